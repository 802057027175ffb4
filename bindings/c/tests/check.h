/* Counts checks and says where one failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

static int checks_passed, checks_failed;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
/* `text` may be NULL, and is to contain `part`. */
#define CHECK_TEXT(text, part) check_text((text), (part), __FILE__, __LINE__)

static inline void check(int holds, const char *what, const char *file, int line) {
    if (holds) {
        __atomic_fetch_add(&checks_passed, 1, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add(&checks_failed, 1, __ATOMIC_RELAXED);
        printf("FAILED: %s:%d: %s\n", file, line, what);
    }
}

static inline void check_text(const char *text, const char *part, const char *file, int line) {
    int holds = text != NULL && strstr(text, part) != NULL;
    check(holds, part, file, line);
    if (!holds)
        printf("    in: %s\n", text != NULL ? text : "(NULL)");
}

static inline int checks_end(void) {
    printf("%d passed, %d failed\n", checks_passed, checks_failed);
    return checks_failed ? 1 : 0;
}

#endif
