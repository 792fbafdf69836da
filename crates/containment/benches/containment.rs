//! What containment costs, against the bare thing, in one run.
//!
//! - `spawn`: spawn + exec + wait of `true`, bare (posix_spawn) and contained, from a small host and from one of 200 MB;
//! - `end`: the end of a tree of N processes, contained (`end` with SIGKILL, verified) and bare (a loop that sends SIGKILL
//!   to every process of the same tree and waits for each).
#![expect(clippy::disallowed_methods, reason = "the bare spawn is what we compare with")]

use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use moored_containment::{Command, Ladder, Layer, Stdio, Use};
use moored_testkit::{Scratch, User, bin, read_pids, wait_until};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

fn contained_true(cgroup: Use) {
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::Null).layer(Layer::Cgroup, cgroup);
    let mut server = command.spawn().expect("true starts");
    assert!(server.wait_ended().expect("a report").verified);
}

fn bare_true() {
    let status = process::Command::new("/bin/true").stdin(process::Stdio::null()).status();
    assert!(status.expect("true starts").success());
}

fn spawn(c: &mut Criterion) {
    for (host, ballast_mb) in [("small", 0_usize), ("200MB", 200)] {
        let ballast = vec![1_u8; ballast_mb << 20];
        let mut group = c.benchmark_group(format!("spawn/{host}"));
        group.sample_size(60).measurement_time(Duration::from_secs(4));
        group.bench_function("bare", |b| b.iter(bare_true));
        group.bench_function("contained-loop", |b| b.iter(|| contained_true(Use::Off)));
        group.bench_function("contained-cgroup", |b| b.iter(|| contained_true(Use::IfAvailable)));
        group.finish();
        std::hint::black_box(&ballast);
    }
}

/// The arguments for a tree of `n` processes that do not end by themselves, and the file that says who they are.
fn tree_args(n: usize, scratch: &Path) -> Vec<String> {
    let file = |name: &str| scratch.join(name).to_string_lossy().into_owned();
    let mut args =
        vec!["--ignore-eof".into(), "--ready-file".into(), file("ready"), "--pid-file".into(), file("pids")];
    if n > 1 {
        args.extend(["--tree".into(), (n - 1).to_string()]);
    }
    args
}

fn wait_for_tree(n: usize, scratch: &Path) -> Vec<u32> {
    wait_until("the tree is up", Duration::from_secs(60), || {
        let up = scratch.join("ready").exists();
        up.then(|| read_pids(scratch.join("pids"))).filter(|pids| pids.len() >= n)
    })
}

fn end_contained(n: usize, cgroup: Use) -> Duration {
    let scratch = Scratch::for_user(User::current());
    let mut command = Command::new(bin("misbehave"));
    command.args(tree_args(n, scratch.path())).layer(Layer::Cgroup, cgroup);
    let mut server =
        command.stdin(Stdio::Pipe).stdout(Stdio::Null).stderr(Stdio::Null).spawn().expect("starts");
    wait_for_tree(n, scratch.path());
    let began = Instant::now();
    let report = server.end(Ladder::kill()).expect("a report");
    let took = began.elapsed();
    assert!(report.verified);
    took
}

fn end_bare(n: usize) -> Duration {
    let scratch = Scratch::for_user(User::current());
    let mut command = process::Command::new(bin("misbehave"));
    command.args(tree_args(n, scratch.path())).stdin(process::Stdio::piped());
    let mut server =
        command.stdout(process::Stdio::null()).stderr(process::Stdio::null()).spawn().expect("starts");
    let pids = wait_for_tree(n, scratch.path());
    let open = |pid: &u32| pidfd_open(Pid::from_raw(pid.cast_signed()).expect("a pid"), PidfdFlags::empty());
    let held: Vec<_> = pids.iter().map(|pid| open(pid).expect("alive")).collect();
    let began = Instant::now();
    for process in &held {
        pidfd_send_signal(process, Signal::KILL).expect("may be killed");
    }
    for process in &held {
        poll(&mut [PollFd::new(process, PollFlags::IN)], None).expect("can wait");
    }
    let took = began.elapsed();
    server.wait().expect("our child");
    took
}

fn end(c: &mut Criterion) {
    for n in [1, 10, 100, 1_000] {
        let mut group = c.benchmark_group("end");
        group.sample_size(10).measurement_time(Duration::from_secs(5));
        let total = |iterations: u64, one: &dyn Fn() -> Duration| (0..iterations).map(|_| one()).sum();
        group.bench_with_input(BenchmarkId::new("bare", n), &n, |b, n| {
            b.iter_custom(|i| total(i, &|| end_bare(*n)));
        });
        group.bench_with_input(BenchmarkId::new("contained-loop", n), &n, |b, n| {
            b.iter_custom(|i| total(i, &|| end_contained(*n, Use::Off)));
        });
        group.bench_with_input(BenchmarkId::new("contained-cgroup", n), &n, |b, n| {
            b.iter_custom(|i| total(i, &|| end_contained(*n, Use::IfAvailable)));
        });
        group.finish();
    }
}

criterion_group!(benches, spawn, end);
criterion_main!(benches);
