/* progress.c: progress bar and signals. The only mutable state of the process that commands share
 * is here, because a signal handler has no argument. */
#include "cli/progress.h"

#include "base/outdir.h"
#include "cli/exit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH   30
#define QUIET_TIME  1.0 /* seconds before an automatic bar appears */
#define REDRAW_TIME 0.1 /* seconds between two drawings */
#define ECHO_TIME   0.2 /* seconds in which another signal is the same one, sent twice */

static volatile sig_atomic_t running, interrupted;
static double interrupted_at; /* only the handler's */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* timeout(1), a terminal and shells send a signal to the process and to its group as well. */
static void on_signal(int number)
{
    static const char message[] = "mha-inspect: interrupted\n";
    (void)number;
    if (running && !interrupted) {
        interrupted = 1;
        interrupted_at = now();
        return;
    }
    if (interrupted && now() - interrupted_at < ECHO_TIME)
        return;
    mha_outfile_abort_all();
    mha_outdir_abort_all();
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    _exit(MHA_EXIT_SIGNAL);
}

void mha_signals_install(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void mha_duration_print(char *out, size_t size, double seconds)
{
    if (seconds < 0)
        seconds = 0;
    if (seconds > 1e7) {
        snprintf(out, size, "%.0f days", seconds / 86400);
        return;
    }
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, size, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(out, size, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, size, "%ld s", s);
}

void mha_progress_start(mha_progress_bar *bar, const char *label)
{
    bar->label = label;
    bar->terminal = isatty(STDERR_FILENO);
    bar->started = bar->drawn = now();
    bar->percent = -1;
    running = 1;
}

static void bar_draw(mha_progress_bar *bar, double fraction, double elapsed)
{
    char left[32] = "", cells[BAR_WIDTH + 1];
    size_t filled = (size_t)(fraction * BAR_WIDTH);
    memset(cells, ' ', BAR_WIDTH);
    memset(cells, '#', filled < BAR_WIDTH ? filled : BAR_WIDTH);
    cells[BAR_WIDTH] = '\0';
    if (fraction > 0)
        mha_duration_print(left, sizeof left, elapsed * (1 - fraction) / fraction);
    bar->percent = (int)(fraction * 100);
    fprintf(stderr, "%s%s [%s] %3d %%  %s left%s", bar->terminal ? "\r" : "", bar->label, cells,
            bar->percent, *left ? left : "?", bar->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

int mha_progress_step(void *context, double done, double total)
{
    mha_progress_bar *bar = context;
    if (interrupted)
        return 1;
    if (bar->mode == MHA_PROGRESS_NEVER || (bar->mode == MHA_PROGRESS_AUTO && !bar->terminal))
        return 0;
    double time = now(), elapsed = time - bar->started;
    double fraction = total > 0 && done < total ? done / total : 1;
    if (bar->mode == MHA_PROGRESS_AUTO && elapsed < QUIET_TIME)
        return 0;
    /* A log gets a line a percent, a terminal ten pictures a second. */
    if (bar->terminal ? time - bar->drawn < REDRAW_TIME : (int)(fraction * 100) == bar->percent)
        return 0;
    bar->drawn = time;
    bar_draw(bar, fraction, elapsed);
    return 0;
}

void mha_progress_end(mha_progress_bar *bar)
{
    running = 0;
    if (bar->percent >= 0 && bar->terminal) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
