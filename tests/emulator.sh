# Sourced by the tests that boot a machine in an emulator (no KVM needed): they set `what` (for messages) and `work` (a folder for the consoles).
passed=0 failed=0

skip() {
    echo "SKIPPED: $what: $1"
    echo "0 passed, 0 failed"
    exit 0
}

need_emulator() {
    kernel=$(compgen -G 'build/kernel/boot/vmlinuz-*' | head -1)
    [ "$(uname -m)" = x86_64 ] || skip "the emulated machine is x86-64, this one is $(uname -m)"
    command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is not installed (tools/setup test installs it)"
    [ -n "$kernel" ] || skip "no kernel in build/kernel (tools/setup test downloads it)"
    command -v cpio >/dev/null || skip "cpio is not installed"
}

# Packs a folder as the file system that the emulated machine starts with: FOLDER FILE
pack_root() { (cd "$1" && find . | cpio --quiet -o -H newc) >"$2"; }

# What the emulated processors do, by the emulator's monitor: SOCKET
processors() {
    python3 - "$1" <<'END'
import socket, sys, time
monitor = socket.socket(socket.AF_UNIX)
monitor.settimeout(10)
monitor.connect(sys.argv[1])
for _ in range(3):
    monitor.sendall(b"info registers -a\n")
    time.sleep(1)
print("\n".join(line for line in monitor.recv(1 << 20).decode(errors="replace").splitlines() if "RIP" in line or "HLT" in line))
END
}

# Boots a machine that runs these checks, for at most a number of seconds, and counts: CHECKS SECONDS WORDS-FOR-THE-KERNEL QEMU-OPTION…
boot() {
    local checks=$1 limit_s=$2 words=$3 console=$work/$1.log monitor=$work/monitor start=$SECONDS emulator status
    shift 3
    rm -f "$monitor" "$work/processors"
    nice -n 5 qemu-system-x86_64 -accel tcg,thread=multi -nodefaults -no-reboot -display none -monitor "unix:$monitor,server=on,wait=off" \
        "$@" -serial "file:$console" -kernel "$kernel" -append "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off checks=$checks $words" </dev/null &
    emulator=$!
    trap 'kill -KILL $emulator' EXIT
    while kill -0 $emulator 2>/dev/null && [ $((SECONDS - start)) -lt "$limit_s" ]; do sleep 0.5; done
    if kill -0 $emulator 2>/dev/null; then
        processors "$monitor" >"$work/processors"
        kill -KILL $emulator
    fi
    # Otherwise the shell says "Killed", too.
    wait $emulator 2>/dev/null
    status=$?
    trap - EXIT
    tr -d '\r' <"$console" | grep -aE '^(ok|FAILED|note|hangs): '
    passed=$((passed + $(tr -d '\r' <"$console" | grep -ac '^ok: ')))
    failed=$((failed + $(tr -d '\r' <"$console" | grep -ac '^FAILED: ')))
    if ! grep -aq "^$checks: end" "$console"; then
        echo "FAILED: the emulated machine did not come to the end: exit status $status after $((SECONDS - start)) of $limit_s s; the end of its console:"
        tail -n 5 "$console" | sed 's/^/    /'
        [ ! -s "$work/processors" ] || sed 's/^/    /' "$work/processors"
        failed=$((failed + 1))
    fi
}

# The closing line, and the test's exit code.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
