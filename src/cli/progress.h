/* progress.h: the bar of a long run, and stopping it with Ctrl-C. */
#ifndef MHA_CLI_PROGRESS_H
#define MHA_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum mha_progress_mode {
    MHA_PROGRESS_AUTO = 0, /* on a terminal, once the run has taken a while */
    MHA_PROGRESS_ALWAYS,
    MHA_PROGRESS_NEVER
} mha_progress_mode;

typedef struct mha_progress_bar {
    mha_progress_mode mode;
    bool terminal; /* standard error is one: the bar is redrawn in place */
    const char *label;
    double started, drawn; /* seconds of the monotonic clock */
    int percent;           /* last one drawn, -1: none */
} mha_progress_bar;

void mha_progress_start(mha_progress_bar *bar, const char *label);
/* An mha_progress of run.h; context is the bar. Non-zero after Ctrl-C. */
int mha_progress_step(void *context, double done, double total);
/* Removes the bar from the terminal. */
void mha_progress_end(mha_progress_bar *bar);

/* Writes "1 h 05 min", "4 min 10 s" or "12 s". */
void mha_duration_print(char *out, size_t size, double seconds);

/* Installs the handlers of SIGINT and SIGTERM: between start and end the first signal asks the run
 * to stop; a second one that comes later than a fifth of a second after it, or one outside a run,
 * removes temporary files and exits with 130. */
void mha_signals_install(void);

#endif
