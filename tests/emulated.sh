# Sourced by checks inside of an emulated machine: one line "ok: …" or "FAILED: …" each. Such a machine is slow and its clock jumps, so
# checks compare amounts of CPU time with each other and wait for states, never for fixed times.
top=/sys/fs/cgroup

check() { # NAME COMMAND…
    name=$1
    echo "$name" >/tmp/check
    shift
    if "$@"; then echo "ok: $name"; else echo "FAILED: $name" && tell_cgroups; fi
}
# What the log of a failure has to say: each cgroup with processes, whether it is frozen, and what it uses within a second.
tell_cgroups() {
    for step in before after; do
        echo "note: $step: $(cut -d ' ' -f 1 /proc/uptime) s, the subtree weighs $(cat $top/cosched/cpu.weight) ($(cat $top/cosched/cpu.idle))"
        for procs in $(find $top -name cgroup.procs -size 0 2>/dev/null); do
            of=${procs%/cgroup.procs}
            first=$(head -n 1 $procs 2>/dev/null) || continue
            [ "$of" = $top ] || [ -z "$first" ] || echo "note: $step: ${of#$top} freeze $(cat $of/cgroup.freeze)," \
                "$(grep frozen $of/cgroup.events), $(grep -E 'usage|throttled' $of/cpu.stat | tr '\n' ' ')max $(cat $of/cpu.max)," \
                "$first: $(cut -d ' ' -f 3 /proc/$first/stat) $(cat /proc/$first/wchan) $(cat /proc/$first/schedstat)"
        done
        sleep 1
    done 2>/dev/null
}

# Tries a command ten times a second until it succeeds, for at most this number of seconds, but 20 times at least: whole seconds may be missing.
within() {
    end=$(($(cut -d. -f1 /proc/uptime) + $1)) tries=0
    shift
    while [ $tries -lt 20 ] || [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
        "$@" >/dev/null 2>&1 && return 0
        tries=$((tries + 1))
        sleep 0.1
    done
    "$@"
}

# The job's cgroup, and its CPU time in microseconds.
cgroup() {
    path=$(cosched show "$1" --json | sed -n 's/.*"cgroup": *"\([^"]*\)".*/\1/p' | head -1)
    echo "$top/${path:-none-of-job-$1}"
}
usage() { sed -n 's/^usage_usec //p' "$1/cpu.stat"; }
has_grown() { [ "$(usage "$1")" -gt $(($2 + 50000)) ]; }
grows() {
    before=$(usage "$1")
    [ -n "$before" ] && within 20 has_grown "$1" "$before"
}
stands_still() {
    before=$(usage "$1")
    [ -n "$before" ] || return 1
    sleep 1.5
    [ "$(usage "$1")" -le $((before + 20000)) ]
}
one_frozen() { find "$@" -name cgroup.events -exec grep -l 'frozen 1' {} + | grep -q .; }
thawed() { [ "$(find "$@" -name cgroup.freeze -exec cat {} + | sort -u)" = 0 ]; }
gone() { [ ! -e "$1" ]; }

# A check that hangs says where: the console is all that is left of this machine.
threads() { for thread in "$1"/task/*; do echo "$(cat $thread/comm) $(cut -d ' ' -f 3 $thread/stat) $(cat $thread/wchan)"; done | sort | uniq -c; }
tell_processes() {
    echo "hangs: $1, at $(cat /proc/uptime)"
    for process in /proc/[0-9]*; do
        # The kernel's own threads have none.
        [ -z "$(tr -d '\0' <$process/cmdline)" ] || echo "hangs: ${process#/proc/}: $(threads $process | tr '\n' ';')"
    done
}
(
    before=
    while sleep 90; do
        now=$(cat /tmp/check)
        [ "$now" != "$before" ] || tell_processes "$now"
        before=$now
    done
) 2>/dev/null &
