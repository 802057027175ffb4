/* C's sizes and offsets of the structs, and the numbers, that bindings/fortran/cosched.f90 repeats. */
#include <cosched.h>
#include <stdio.h>

int main(void) {
    printf("version %d\n", COSCHED_VERSION_NUMBER);
    printf("sizes %zu %zu %zu %zu\n", sizeof(cosched_resources), sizeof(cosched_use), sizeof(cosched_job),
           sizeof(cosched_load));
    printf("errors %d %d %d %d %d %d %d %d %d %d %d\n", COSCHED_ERR_OK, COSCHED_ERR_INVALID, COSCHED_ERR_NO_DAEMON,
           COSCHED_ERR_NOT_FOUND, COSCHED_ERR_FORBIDDEN, COSCHED_ERR_CONFLICT, COSCHED_ERR_UNSUPPORTED,
           COSCHED_ERR_VERSION, COSCHED_ERR_DAEMON, COSCHED_ERR_TIMEOUT, COSCHED_ERR_INTERNAL);
    printf("classes %d %d %d %d %d\n", COSCHED_CLASS_DEFAULT, COSCHED_CLASS_EXPRESS, COSCHED_CLASS_INTERACTIVE,
           COSCHED_CLASS_BATCH, COSCHED_CLASS_STANDBY);
    printf("states %d %d %d %d %d %d %d\n", COSCHED_STATE_RUNNING, COSCHED_STATE_ASLEEP, COSCHED_STATE_SUSPENDED,
           COSCHED_STATE_ENDED, COSCHED_STATE_LOST, COSCHED_STATE_DROPPED, COSCHED_STATE_WAITING);
    printf("unknown %lld\n", (long long)COSCHED_UNKNOWN);
    return 0;
}
