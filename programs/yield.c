/* A short compute loop, then sched_yield, repeatedly: with two copies on a CPU each yield is a context switch, and
 * what the two take longer than twice one is its cost (Strazdins and Uhlmann, 2004, section 2.2, equation 3). */
#define _GNU_SOURCE
#include "yield.h"

#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <string.h>

static const char help[] =
    "Computes for a moment and yields the CPU, again and again: the cost of a context switch.\n\n"
    "Usage: yield [OPTIONS]\n\n"
    "Options:\n"
    "      --pair             run one copy and two copies at once, in turns, and print alpha_c\n"
    "      --repetitions R    with --pair: runs of each, the median counts [default: 5]\n"
    "      --yields Y         yields of a copy [default: 50000]\n"
    "      --loops N          loops of work before each yield [default: 1000]\n"
    "      --grain-us G       instead: microseconds of CPU time, calibrated to loops at start\n"
    "      --cpu C            the CPU that all copies run on [default: the first allowed]\n"
    "      --by WAY           how a copy gives the CPU to the other [default: yield]\n"
    "                           yield  sched_yield, as in the paper; the scheduler may continue with the same\n"
    "                           rr     sched_yield under SCHED_RR (root): always the other, and with\n"
    "                                  priority before all else on this CPU\n"
    "                           futex  wakes the other and waits to be woken: always the other, and the\n"
    "                                  cost of waking and of waiting is in it (needs --pair)\n"
    "      --json             print one line of JSON\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  yield --pair\n"
    "  yield --pair --by rr --yields 100000 --json\n"
    "  yield --cpu 1 --yields 1000000 & yield --cpu 1 --yields 1000000; wait    # the two runs by hand\n"
    "\nalpha_c = (t_2 - 2 t_1) / switches, where the switches are counted by the kernel; they are\n"
    "2 Y when each yield leads to one, and then it is the paper's (t_2 - 2 t_1) / (2 Y), which is\n"
    "printed too. alpha_c_cpu is the same from CPU times: what other programs take is not in it.\n"
    "The check: the work of each copy has the result of its number of loops.\n"
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option.\n";

static const char *const by_names[] = {"yield", "rr", "futex"};

static yield_by parse_by(const char *text) {
    for (int by = BY_YIELD; by <= BY_FUTEX; by++)
        if (!strcmp(text, by_names[by])) return (yield_by)by;
    usage_error("--by: '%s' is unknown; give yield, rr or futex", text);
}

static void parse_options(yield_options *o, int argc, char **argv) {
    enum { PAIR = 256, REPETITIONS, YIELDS, LOOPS, GRAIN_US, CPU, BY, JSON };
    static const struct option long_options[] = {
        {"pair", no_argument, NULL, PAIR},         {"repetitions", required_argument, NULL, REPETITIONS},
        {"yields", required_argument, NULL, YIELDS}, {"loops", required_argument, NULL, LOOPS},
        {"grain-us", required_argument, NULL, GRAIN_US}, {"cpu", required_argument, NULL, CPU},
        {"by", required_argument, NULL, BY},       {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    *o = (yield_options){.yields = 50000, .cpu = -1};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        switch (option) {
        case PAIR: o->pair = 1; break;
        case REPETITIONS: o->repetitions = (unsigned)parse_count("--repetitions", optarg, 1, 1000); break;
        case YIELDS: o->yields = parse_count("--yields", optarg, 1, UINT64_C(1000000000)); break;
        case LOOPS: o->loops = parse_count("--loops", optarg, 1, UINT64_C(1000000000)); break;
        case GRAIN_US: o->grain_us = parse_number("--grain-us", optarg, 0.001, 1e6, "microseconds"); break;
        case CPU: o->cpu = (int)parse_count("--cpu", optarg, 0, CPU_SETSIZE - 1); break;
        case BY: o->by = parse_by(optarg); break;
        case JSON: o->json = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
    if (o->loops && o->grain_us > 0) usage_error("--loops and --grain-us exclude each other; give one");
    if (!o->pair && o->by == BY_FUTEX) usage_error("--by futex hands over to a second copy; give --pair too");
    if (!o->pair && o->by == BY_RR) usage_error("--by rr would keep all else from the CPU; give --pair too");
    if (!o->pair && o->repetitions) usage_error("--repetitions is for --pair");
    if (!o->repetitions) o->repetitions = 5;
}

static int report_single(const yield_options *o, const yield_copy *c) {
    double main_phase_s = (double)(c->end_ns - c->start_ns) / 1e9, cpu_s = (double)c->cpu_ns / 1e9;
    double per_yield = (double)c->switches / (double)o->yields;
    if (o->json)
        printf("{\"program\":\"yield\",\"members\":1,\"yields\":%llu,\"loops\":%llu,\"cpu\":%d,\"main_phase_s\":%.6f,"
               "\"cpu_s\":%.6f,\"switches_per_yield\":%.4f,\"check\":\"%s\"}\n",
               (unsigned long long)o->yields, (unsigned long long)o->loops, o->cpu, main_phase_s, cpu_s, per_yield,
               c->wrong ? "wrong" : "ok");
    else
        printf("yield: %llu yields with %llu loops between, on CPU %d\nmain phase %.3f s, CPU time %.3f s, %.3f switches "
               "a yield\n",
               (unsigned long long)o->yields, (unsigned long long)o->loops, o->cpu, main_phase_s, cpu_s, per_yield);
    return c->wrong;
}

static int report_pair(const yield_options *o, const yield_pair_result *r) {
    if (o->json)
        printf("{\"program\":\"yield\",\"members\":2,\"by\":\"%s\",\"yields\":%llu,\"loops\":%llu,\"cpu\":%d,"
               "\"repetitions\":%u,\"main_phase_s\":%.6f,\"t1_s\":%.6f,\"t2_s\":%.6f,\"alpha_c_us\":%.4f,"
               "\"alpha_c_min_us\":%.4f,\"alpha_c_max_us\":%.4f,\"alpha_c_per_yield_us\":%.4f,\"alpha_c_cpu_us\":%.4f,"
               "\"switches_per_yield\":%.4f,\"check\":\"%s\"}\n",
               by_names[o->by], (unsigned long long)o->yields, (unsigned long long)o->loops, o->cpu, o->repetitions,
               r->t2_s, r->t1_s, r->t2_s, r->alpha_c_us, r->alpha_c_min_us, r->alpha_c_max_us, r->alpha_c_yield_us,
               r->alpha_c_cpu_us, r->switches_per_yield, r->wrong ? "wrong" : "ok");
    else
        printf("yield: %u times %llu yields with %llu loops between, by %s, on CPU %d\n"
               "t_1 %.4f s, t_2 %.4f s (medians), %.3f switches a yield\n"
               "alpha_c %.3f us (%.3f to %.3f); by the number of yields %.3f us, from CPU times %.3f us\n",
               o->repetitions, (unsigned long long)o->yields, (unsigned long long)o->loops, by_names[o->by], o->cpu,
               r->t1_s, r->t2_s, r->switches_per_yield, r->alpha_c_us, r->alpha_c_min_us, r->alpha_c_max_us,
               r->alpha_c_yield_us, r->alpha_c_cpu_us);
    if (r->switches_per_yield < 0.5)
        fprintf(stderr, "yield: only %.0f %% of the yields led to a switch; --by rr or --by futex always does\n",
                r->switches_per_yield * 100);
    return r->wrong;
}

int main(int argc, char **argv) {
    yield_options options;
    program_start(argv[0]);
    parse_options(&options, argc, argv);
    yield_pin(&options);
    if (options.grain_us > 0) options.loops = (uint64_t)fmax(llround(options.grain_us * calibrate_loops_per_us()), 1);
    if (!options.loops) options.loops = 1000;
    int wrong;
    if (options.pair) {
        yield_pair_result result;
        yield_pair(&options, &result);
        wrong = report_pair(&options, &result);
    } else {
        yield_copy result;
        unsigned turn = 0;
        yield_work(&options, &turn, 0, 1, &result);
        wrong = report_single(&options, &result);
    }
    if (wrong) fprintf(stderr, "yield: the result is wrong: the result of a copy's work does not match its number of loops\n");
    return wrong ? EXIT_WRONG : 0;
}
