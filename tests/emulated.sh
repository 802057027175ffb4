# Sourced by checks inside of an emulated machine: one line "ok: …" or "FAILED: …" each. Such a machine is slow and its clock jumps, so
# checks compare amounts of CPU time with each other and wait for states, never for fixed times.
top=/sys/fs/cgroup

check() { # NAME COMMAND…
    name=$1
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
