/* Tells user space for which job a message arrived.
 *
 * The problem: under demand-based coscheduling the arrival of a message must wake the slot thread, at a limited rate for each job, and must cost
 * nothing for all others. The rule: where the kernel tells a socket's reader that there is data, the socket's cgroup (that of the process that
 * created it) is looked up among our gangs; a job that has not rung recently is written to a ring buffer.
 * Only those fields of the kernel's structures that are read are declared here; the loader finds their offsets by the kernel's BTF.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_RINGBUF = 27 };
enum { TCP_LISTEN = 10 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))

struct kernfs_node {
	__u64 id;
} KERNEL;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL;

struct sock_cgroup_data {
	struct cgroup *cgroup;
} KERNEL;

struct sock_common {
	volatile unsigned char skc_state;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
} KERNEL;

/* A gang: its job, how long it is silent after it rang, and when it may ring again (ns, CLOCK_MONOTONIC). */
struct gang {
	__u64 job;
	__u64 pause_ns;
	__u64 next_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct gang);
} gangs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} rings SEC(".maps");

SEC("tp_btf/sk_data_ready")
int BPF_PROG(message_arrived, const struct sock *sk)
{
	__u64 cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	struct gang *gang = bpf_map_lookup_elem(&gangs, &cgroup);
	__u64 now_ns;

	if (!gang || sk->__sk_common.skc_state == TCP_LISTEN)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (now_ns < gang->next_ns)
		return 0;
	gang->next_ns = now_ns + gang->pause_ns;
	/* A full ring means that the slot thread has enough to wake for already. */
	bpf_ringbuf_output(&rings, &gang->job, sizeof(gang->job), 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
