//! Sessions inside sessions.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Output, Stdio};

use moored_containment::{EndReport, Findable, ProcessIdentity};
use moored_testkit::wait::wait_for_file;
use moored_testkit::{bin, example, left_out, wait_until};
use rustix::process::Signal;

use crate::common::hold::{Cell, Hold, cells, cells_with};
use crate::common::part::Part;
use crate::common::traces::{names, records, values};
use crate::common::{DEADLINE, kill_at_once, send};
use crate::swept::sweep_report;

/// `contain` inside `contain`, so many times, around `misbehave` with these switches.
fn nest(part: &Part, hold: Hold, depth: usize, switches: &[&str]) -> std::process::Command {
    let contain = example("moored-containment", "contain").into_os_string();
    let mut argv = Vec::new();
    for _ in 0..depth {
        argv.push(contain.clone());
        argv.extend(hold.contain_options().iter().map(Into::into));
        argv.extend(["--grace", "100ms", "--kill-after", "300ms", "--"].map(Into::into));
    }
    argv.push(bin("misbehave").into_os_string());
    argv.extend(switches.iter().map(Into::into));
    part.set(part.wrap().command(&argv[0], &argv[1..]))
}

fn run(part: &Part, hold: Hold, depth: usize, switches: &[&str]) -> Output {
    nest(part, hold, depth, switches).output().expect("contain")
}

/// The reports on stderr, the innermost first.
fn reports(stderr: &[u8]) -> Vec<EndReport> {
    let text = String::from_utf8_lossy(stderr);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {text}"))).collect()
}

#[track_caller]
fn assert_clean(part: &Part, what: &Cell) {
    assert_nobody_left(part, what);
    assert!(names(&part.scratch.join("run")).is_empty(), "{what:?}: {:?}", names(&part.scratch.join("run")));
}

#[track_caller]
fn assert_nobody_left(part: &Part, what: &Cell) {
    let left = part.mark.wait_until_none(DEADLINE);
    assert!(left.is_ok(), "{what:?}: {left:?}");
    let leaves = part.group.as_ref().map(|group| group.leaves()).unwrap_or_default();
    assert!(leaves.is_empty(), "{what:?}: {leaves:?}");
}

#[test]
fn a_session_works_at_any_depth_and_says_how_it_can_be_found() {
    for cell in cells().into_iter().filter(|cell| cell.1 != Hold::Sealed) {
        let part = Part::new("", cell.0);
        let ran = run(&part, cell.1, 6, &["--tree", "3", "--daemon", "--exit-now", "3"]);
        assert_eq!(ran.status.code(), Some(3), "{cell:?}: {ran:?}");
        let reports = reports(&ran.stderr);
        let findable: Vec<_> = reports.iter().map(|report| report.strength.findable).collect();
        let (by_id, by_cookie) = (Findable::RecordOnly, Findable::ByCookie);
        assert_eq!(findable, [by_id, by_id, by_cookie, by_cookie, by_cookie, by_cookie], "{cell:?}");
        assert!(reports.iter().all(|report| report.verified), "{cell:?}: {reports:?}");
        assert_clean(&part, &cell);
    }
}

/// The kernel allows sixteen domains inside each other, and a session needs two.
#[test]
fn the_ninth_sealed_session_inside_others_is_refused() {
    for cell in cells_with(Hold::Sealed) {
        let part = Part::new("", cell.0);
        let eight = run(&part, Hold::Sealed, 8, &["--exit-now", "3"]);
        assert_eq!(eight.status.code(), Some(3), "{eight:?}");
        assert_eq!(reports(&eight.stderr).len(), 8);
        let nine = run(&part, Hold::Sealed, 9, &["--exit-now", "3"]);
        let words = String::from_utf8_lossy(&nine.stderr);
        let refusal = words.lines().next().unwrap_or_default();
        assert_eq!(nine.status.code(), Some(125), "{words}");
        assert!(refusal.contains("landlock") && refusal.contains("misbehave"), "{refusal}");
        assert!(
            !refusal.contains("Argument list too long"),
            "that is no reason that anybody understands: {refusal}"
        );
        assert_clean(&part, &cell);
    }
}

// === ends ===

struct Nested {
    part: Part,
    child: Child,
}

impl Nested {
    /// Two sessions, one inside the other, around a stubborn tree.
    fn start(cell: Cell) -> Self {
        let part = Part::new("", cell.0);
        let ready = part.scratch.join("ready");
        let mut command =
            nest(&part, cell.1, 2, &["--ignore-eof", "--ignore-term", "--tree", "5", "--daemon"]);
        command
            .args(["--clean-daemon", "--ready-file"])
            .arg(&ready)
            .arg("--pid-file")
            .arg(part.scratch.join("pids"));
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("contain");
        wait_for_file(&ready, DEADLINE);
        Self { part, child }
    }

    /// The outer session's owner.
    fn owner(&self) -> ProcessIdentity {
        ProcessIdentity::of(self.child.id()).expect("our child")
    }

    /// The two owners and four guardians, the outer session's first; from the records.
    fn keepers(&self) -> Vec<ProcessIdentity> {
        let of = |pair: &str| {
            let pid = pair.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a pid");
            ProcessIdentity::of(pid).expect("it lives")
        };
        let mut found = Vec::new();
        for record in wait_until("two whole records", DEADLINE, || {
            let records = records(&self.part.scratch.join("run"));
            (records.len() == 2 && records.iter().all(|r| values(r, "process").len() == 3)).then_some(records)
        }) {
            let owner = of(&values(&record, "owner")[0]);
            let guardians = values(&record, "process")[..2].iter().map(|pair| of(pair)).collect::<Vec<_>>();
            found.push([vec![owner], guardians].concat());
        }
        // The outer session's owner is the test's own child.
        found.sort_by_key(|keepers| keepers[0].pid != self.child.id());
        found.concat()
    }
}

/// Its own session or not, politely or not: all of the inner session is of the outer one's tree.
#[test]
fn the_end_of_the_outer_session_is_the_end_of_the_inner_one() {
    type Way = fn(&mut Nested);
    // Whoever is in a namespace of its own has written down the numbers of that namespace.
    const WITHOUT_RECORDS: usize = 3;
    let ways: [(&str, Way); 5] = [
        ("eof", |nested| nested.child.stdin = None),
        ("term", |nested| assert!(send(&nested.owner(), Signal::TERM))),
        ("killed", |nested| assert!(send(&nested.owner(), Signal::KILL))),
        ("inner owner stopped", |nested| {
            assert!(send(&nested.keepers()[3], Signal::STOP) && send(&nested.owner(), Signal::KILL));
        }),
        ("outer guardian killed", |nested| assert!(send(&nested.keepers()[1], Signal::KILL))),
    ];
    for cell in cells() {
        let count = if cell.1 == Hold::Strict { WITHOUT_RECORDS } else { ways.len() };
        for (name, way) in &ways[..count] {
            let mut nested = Nested::start(cell);
            way(&mut nested);
            let left = nested.part.mark.wait_until_none(DEADLINE);
            assert!(left.is_ok(), "{cell:?} {name}: {left:?}");
            nested.child.wait().expect("our child");
            // Guardians that were killed with the tree could not forget their own session.
            sweep_report(cell.0, &nested.part.scratch.join("run"));
            assert_nobody_left(&nested.part, &cell);
            if cell.1 != Hold::Strict {
                assert_clean(&nested.part, &cell);
            }
        }
    }
}

/// Where all processes can be seen, a namespace that nobody is in is gone, and so is whatever was written down in it.
#[test]
fn heavy_a_session_of_a_namespace_that_is_gone_is_forgotten() {
    const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
    if fs::metadata("/proc/self/ns/pid").expect("/proc").ino() != FIRST_NAMESPACE {
        return left_out(
            "sessions of a PID namespace that is gone: the tests run in a PID namespace themselves",
        );
    }
    for cell in cells_with(Hold::Strict) {
        let mut nested = Nested::start(cell);
        assert!(send(&nested.owner(), Signal::KILL));
        nested.child.wait().expect("our child");
        assert_nobody_left(&nested.part, &cell);
        // The number of a namespace is given out again at once, and other tests make namespaces too.
        let folder = nested.part.scratch.join("run");
        wait_until("it is forgotten", DEADLINE, || {
            sweep_report(cell.0, &folder);
            names(&folder).is_empty().then_some(())
        });
    }
}

#[test]
fn a_sweep_finds_what_two_dead_sessions_left() {
    for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
        let mut nested = Nested::start(cell);
        let keepers = nested.keepers();
        assert_eq!(keepers.len(), 6);
        kill_at_once(&keepers);
        nested.child.wait().expect("our child");
        nested.part.mark.wait_until_at_least(7, DEADLINE).expect("orphans");
        let report = sweep_report(cell.0, &nested.part.scratch.join("run"));
        assert_eq!(report.sessions.len(), 2, "{cell:?}: {report:?}");
        assert!(
            report.errors.is_empty() && report.sessions.iter().all(|s| s.survivors.is_empty()),
            "{report:?}"
        );
        assert_clean(&nested.part, &cell);
    }
}

/// Whoever has the inner mark is of the outer session too: a plain user can only lower the limit.
#[test]
fn the_outer_cookie_covers_the_inner_one() {
    for cell in cells_with(Hold::Loop) {
        let nested = Nested::start(cell);
        let cookies: Vec<u64> = nested.keepers().iter().filter_map(|keeper| cookie_of(keeper.pid)).collect();
        // The outer owner and its guardians have none; the inner owner and its guardians have the outer session's.
        let [outer, rest @ ..] = &cookies[..] else { panic!("{cookies:?}") };
        assert!(rest.len() == 2 && rest.iter().all(|cookie| cookie == outer), "{cookies:?}");
        let pids = moored_testkit::read_pids(nested.part.scratch.join("pids"));
        let inner: Vec<u64> = pids.iter().filter_map(|pid| cookie_of(*pid)).collect();
        assert_eq!(inner.len(), pids.len());
        for cookie in inner {
            assert!(cookie < *outer && cookie >> 32 == outer >> 32, "{cookie:x} in {outer:x}");
        }
    }
}

fn cookie_of(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it lives");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks")).expect("a line");
    line.split_whitespace().next()?.parse().ok()
}
