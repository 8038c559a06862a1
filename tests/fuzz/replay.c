/* replay.c: runs a fuzz target once over each file named on the command line, so that the corpus is
 * a test on machines without libFuzzer. It prints the file before it runs it: after a crash, the
 * last name is the culprit. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)ftell(f);
    rewind(f);
    /* Exactly as large as the input, so that a sanitizer sees the first byte behind it. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (!data || fread(data, 1, size, f) != size) {
        perror(path);
        return 1;
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    return failed;
}
