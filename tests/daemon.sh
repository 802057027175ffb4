# A separate daemon for a test, for scripts: start_daemon, stop_daemon. The script sets `built` (where the programs are), `cgroup`
# (the daemon's, a name that begins with cst-) and `work` (a folder for its log).
state=

# Starts a daemon under private names. A Unix socket's path is short, so it is not in the checkout.
start_daemon() {
    state=$(mktemp -d /tmp/cst-tests-XXXXXX) && chmod 755 "$state" || return 1
    export COSCHED_SOCKET=$state/coschedd.sock
    # Other tests' processes are no neighbours whose part of the slots is to be tested.
    echo 'reserve = 0.1' >"$state/cosched.toml"
    "$built/coschedd" --config "$state/cosched.toml" --socket "$COSCHED_SOCKET" --state-dir "$state/state" --cgroup "$cgroup" \
        >"$work/daemon.log" 2>&1 &
    daemon=$!
    for _ in $(seq 200); do
        [ -S "$COSCHED_SOCKET" ] && return 0
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/daemon.log"
    return 1
}

# Ends the jobs that a failed test has left and the daemon, and removes what it made.
stop_daemon() {
    [ -n "$state" ] || return 0
    local mount dir
    while read -r _ mount _; do
        for dir in "$mount/$cgroup"/job-*; do
            [ ! -e "$dir/cgroup.kill" ] || echo 1 >"$dir/cgroup.kill"
        done
    done < <(grep -E '^[^ ]+ [^ ]+ cgroup2 ' /proc/self/mounts)
    kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
    while read -r _ mount _; do
        [ ! -d "$mount/$cgroup" ] || find "$mount/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
    done < <(grep -E '^[^ ]+ [^ ]+ cgroup2? ' /proc/self/mounts)
    if mountpoint -q "$state/agent"; then
        umount -l "$state/agent"
    fi
    tools/leftovers --forget "$cgroup"
    rm -rf "$state"
    state=
}
