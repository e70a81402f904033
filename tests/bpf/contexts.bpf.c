// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * contexts.bpf.c - the same allocations in every program type that may use an arena.
 *
 * Each comes as a pair: arn_X allocates and frees; ctl_X only reads the arena, and so tells whether
 * this kernel knows the type and lets it use an arena at all.
 */
#include <linux/bpf.h>
#include <arenite/arenite.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 ran, bad, reserved;
int reserve_err;

static inline __attribute__((always_inline)) void pair(void)
{
	void __arena *p = arn_malloc(64), *q = arn_malloc(100000), *z = arn_calloc(3, 100);

	if (!p || !q || !z)
		__sync_fetch_and_add(&bad, 1);
	else
		*(volatile __u64 __arena *)p = *(volatile __u64 __arena *)z;
	if (arn_free(p) || arn_free(q) || arn_free(z))
		__sync_fetch_and_add(&bad, 1);
	__sync_fetch_and_add(&ran, 1);
}

static inline __attribute__((always_inline)) void grow(void)
{
	reserve_err = arn_reserve(20 << 20);
	__sync_fetch_and_add(&reserved, 1);
}

static inline __attribute__((always_inline)) void look(void)
{
	struct arn_root __arena *r = arn_root(ARN_HERE);

	arn_name_arena();
	if (r->magic == ARN_MAGIC)
		__sync_fetch_and_add(&ran, 1);
}

#define CONTEXT(name, section, ret)                                                                                    \
	SEC(section) int arn_##name(void *ctx)                                                                         \
	{                                                                                                              \
		pair();                                                                                                \
		return ret;                                                                                            \
	}                                                                                                              \
	SEC(section) int ctl_##name(void *ctx)                                                                         \
	{                                                                                                              \
		look();                                                                                                \
		return ret;                                                                                            \
	}

/* One that may sleep also reserves. */
#define SLEEPER(name, section, ret)                                                                                    \
	SEC(section) int arn_##name(void *ctx)                                                                         \
	{                                                                                                              \
		grow();                                                                                                \
		pair();                                                                                                \
		return ret;                                                                                            \
	}                                                                                                              \
	SEC(section) int ctl_##name(void *ctx)                                                                         \
	{                                                                                                              \
		look();                                                                                                \
		return ret;                                                                                            \
	}

SLEEPER(syscall, "syscall", 0)
CONTEXT(socket, "socket", 0)
CONTEXT(tc, "tc", 0)
CONTEXT(tcx, "tcx/ingress", 0)
CONTEXT(xdp, "xdp", 2)
CONTEXT(cg_skb, "cgroup_skb/ingress", 1)
CONTEXT(lwt_in, "lwt_in", 0)
CONTEXT(lwt_out, "lwt_out", 0)
CONTEXT(lwt_xmit, "lwt_xmit", 0)
CONTEXT(seg6, "lwt_seg6local", 0)
CONTEXT(flow, "flow_dissector", 0)
CONTEXT(lookup, "sk_lookup", 1)
CONTEXT(netfilter, "netfilter", 1)
CONTEXT(raw_tp, "raw_tp/sched_switch", 0)
CONTEXT(raw_tp_w, "raw_tp.w", 0)
CONTEXT(tp_btf, "tp_btf/sched_switch", 0)
CONTEXT(tp, "tracepoint/sched/sched_switch", 0)
CONTEXT(perf, "perf_event", 0)
CONTEXT(kprobe, "kprobe", 0)
CONTEXT(uprobe, "uprobe", 0)
CONTEXT(uretprobe, "uretprobe", 0)
SLEEPER(uprobe_s, "uprobe.s", 0)
CONTEXT(iter, "iter/task", 0)
SLEEPER(iter_s, "iter.s/task", 0)
CONTEXT(iter_map, "iter/bpf_map", 0)
CONTEXT(fentry, "fentry/bpf_fentry_test1", 0)
CONTEXT(fexit, "fexit/bpf_fentry_test1", 0)
CONTEXT(lsm, "lsm/file_open", 0)
SLEEPER(lsm_s, "lsm.s/file_open", 0)
CONTEXT(cg_dev, "cgroup/dev", 1)
CONTEXT(cg_sysctl, "cgroup/sysctl", 1)
CONTEXT(cg_sock, "cgroup/sock_create", 1)
CONTEXT(cg_addr, "cgroup/connect4", 1)
CONTEXT(cg_opt, "cgroup/getsockopt", 1)
CONTEXT(sockops, "sockops", 1)
CONTEXT(sk_msg, "sk_msg", 1)
CONTEXT(sk_skb, "sk_skb/stream_verdict", 1)
CONTEXT(reuseport, "sk_reuseport", 1)

/* Callbacks, set off by a syscall program. */
struct timer_val {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct timer_val);
} timers SEC(".maps");

static int on_timer(void *map, int *key, struct timer_val *v)
{
	pair();
	return 0;
}

SEC("syscall")
int arn_timer(void *ctx)
{
	struct timer_val *v;
	int key = 0;

	v = bpf_map_lookup_elem(&timers, &key);
	if (!v || bpf_timer_init(&v->timer, &timers, 1 /* CLOCK_MONOTONIC */))
		return 1;
	bpf_timer_set_callback(&v->timer, on_timer);
	return bpf_timer_start(&v->timer, 0, 0) != 0;
}

extern int bpf_wq_init(struct bpf_wq *wq, void *map, unsigned int flags) __weak __ksym;
extern int bpf_wq_start(struct bpf_wq *wq, unsigned int flags) __weak __ksym;
/* Before 7.0, and from then on. */
extern int bpf_wq_set_callback_impl(struct bpf_wq *wq, int (*callback)(void *map, int *key, void *value),
				    unsigned int flags, void *aux__ign) __weak __ksym;
extern int bpf_wq_set_callback(struct bpf_wq *wq, int (*callback)(void *map, int *key, void *value),
			       unsigned int flags) __weak __ksym;

struct wq_val {
	struct bpf_wq wq;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct wq_val);
} wqs SEC(".maps");

static int on_wq(void *map, int *key, void *value)
{
	grow();
	pair();
	return 0;
}

SEC("syscall")
int arn_wq(void *ctx)
{
	struct wq_val *v;
	int key = 0;

	v = bpf_map_lookup_elem(&wqs, &key);
	if (!v || bpf_wq_init(&v->wq, &wqs, 0))
		return 1;
	if (bpf_ksym_exists(bpf_wq_set_callback) ? bpf_wq_set_callback(&v->wq, on_wq, 0)
						 : bpf_wq_set_callback_impl(&v->wq, on_wq, 0, 0))
		return 1;
	return bpf_wq_start(&v->wq, 0) != 0;
}

SEC("syscall")
int ctl_timer(void *ctx)
{
	look();
	return 0;
}

SEC("syscall")
int ctl_wq(void *ctx)
{
	look();
	if (bpf_ksym_exists(bpf_wq_set_callback))
		return 0;
	barrier(); /* or the two addresses are or'ed, which the verifier refuses */
	return !bpf_ksym_exists(bpf_wq_set_callback_impl);
}
