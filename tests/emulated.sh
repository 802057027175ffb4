# Sourced by checks inside of an emulated machine: one line "ok: …" or "FAILED: …" each. Such a machine is slow and its clock jumps, so
# checks compare amounts of CPU time with each other and wait for states, never for fixed times.
top=/sys/fs/cgroup

check() { # NAME COMMAND…
    name=$1
    echo "$name" >/tmp/check
    shift
    if "$@"; then echo "ok: $name"; else echo "FAILED: $name"; fi
}

# Tries a command ten times a second until it succeeds, for at most this number of seconds.
within() {
    end=$(($(cut -d. -f1 /proc/uptime) + $1))
    shift
    while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
        "$@" >/dev/null 2>&1 && return 0
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
grows() {
    before=$(usage "$1")
    [ -n "$before" ] || return 1
    sleep 1.5
    [ "$(usage "$1")" -gt $((before + 50000)) ]
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
