//! The same driver over rmcp's own `TokioChildProcess` and over this crate, in one run: how many processes each leaves.
//! What rmcp leaves is printed, not demanded; `docs/benchmarks.md` has the figures that were seen.

#![expect(clippy::print_stderr, reason = "the comparison is for people")]

use moored_testkit::{User, bin, wait_until};

use crate::host::{DEADLINE, GONE, Host, stub};

const SERVERS: usize = 4;
// rmcp gives a server EOF, 3 s, SIGKILL: a count that is taken earlier would be unfair.
const _: () = assert!(GONE.as_secs() > 4);

/// How both daemons are driven.
struct Case {
    what: &'static str,
    server: String,
    refreshes: usize,
    /// Whether clones with calls in flight are kept.
    in_flight: bool,
}

/// Servers that are alive besides the present generation, and after the daemon's end.
#[derive(Debug, PartialEq)]
struct Left {
    after_refreshes: usize,
    after_end: usize,
}

/// How the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Exits,
    IsKilled,
}

fn count(host: &Host) -> usize {
    let is_server = |comm: &str| comm.starts_with("stub_server") || comm.starts_with("misbehave");
    host.mark.alive().iter().filter(|process| is_server(&process.comm)).count()
}

/// Counts when nothing has changed for as long as rmcp gives a server, or when there is nobody too many.
fn settled(host: &Host, expected: usize) -> usize {
    let began = std::time::Instant::now();
    wait_until("the count has settled", DEADLINE, || {
        let count = count(host);
        (count <= expected || began.elapsed() > GONE).then_some(count)
    })
}

fn drive(daemon: &str, case: &Case, end: End) -> Left {
    let mut args: Vec<_> =
        ["--end", "hold", "--call", "hang", "--drain", "20", "--refreshes"].map(str::to_owned).into();
    args.push(case.refreshes.to_string());
    args.extend(case.in_flight.then(|| "--in-flight".to_owned()));
    args.extend((0..SERVERS).flat_map(|_| ["--server".to_owned(), case.server.clone()]));
    let args: Vec<_> = args.into_iter().map(Into::into).collect();
    let mut host = Host::start(User::current(), daemon, &args);
    wait_until("all refreshes", DEADLINE, || (host.out().lines().count() == case.refreshes).then_some(()));
    let present = SERVERS * if case.server.contains("--daemon") { 2 } else { 1 };
    let after_refreshes = settled(&host, present).saturating_sub(present);
    match end {
        End::Exits => host.close_stdin(),
        End::IsKilled => host.kill(),
    }
    host.wait();
    Left { after_refreshes, after_end: settled(&host, 0) }
}

#[test]
fn heavy_the_same_driver_over_rmcp_and_over_this_crate() {
    let misbehave = bin("misbehave").display().to_string();
    let case = |what, server: &str, refreshes, in_flight| Case {
        what,
        server: server.to_owned(),
        refreshes,
        in_flight,
    };
    let (daemons, deaf) = (format!("{misbehave} --daemon"), format!("{misbehave} --ignore-eof"));
    let many = if std::env::var_os("MOORED_TEST_FULL").is_some() { 25 } else { 10 };
    // The last two take as long as the ladder each time.
    let cases = [
        (case("clones kept, calls in flight", &stub(), many, true), End::Exits),
        (case("no clones kept", &stub(), many, false), End::Exits),
        (case("servers that leave a daemon", &daemons, 3, false), End::Exits),
        (case("servers that ignore EOF, clones kept", &deaf, 3, true), End::IsKilled),
    ];
    eprintln!("{SERVERS} servers; left besides the present generation, and after the host's end");
    for (case, end) in &cases {
        let (theirs, ours) = (drive("rmcp_daemon", case, *end), drive("refresh_daemon", case, *end));
        let Case { what, refreshes, .. } = case;
        eprintln!("{what}, {refreshes} refreshes, host {end:?}: rmcp {theirs:?}, moored-client {ours:?}");
        assert_eq!(ours, Left { after_refreshes: 0, after_end: 0 }, "{}", case.what);
    }
}
