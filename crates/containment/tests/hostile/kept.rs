//! `--keep` spares what it names, and nothing that only says so.

use std::fs;
use std::time::Duration;

use moored_testkit::User;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::ending::Ending;
use crate::common::hold::{Hold, cells_with};
use crate::common::host::Plan;
use crate::common::traces::assert_nothing_left;

/// The name stands in the arguments of a script and in its short name; the script itself is called otherwise.
#[test]
fn what_only_bears_the_name_of_a_kept_program_is_not_kept() {
    for cell in cells_with(Hold::Loop) {
        for ending in [Ending::End, Ending::HostKilled] {
            let plan = Plan::new(cell, ending).options(["--keep", "tmux"]);
            let worker = "echo tmux >/proc/$$/comm; touch \"$2\"; while :; do sleep 1000; done";
            fs::write(plan.scratch().join("worker.sh"), worker).expect("a script");
            let script = r#"setsid sh "$1/worker.sh" tmux "$1/up" </dev/null &
                until test -e "$1/up"; do sleep 0.01; done; touch "$1/ready"; exec cat"#;
            let mut host = plan.script(script).start();
            host.bring_end();
            if let Some(report) = host.report() {
                assert_eq!(report.kept, [], "{cell:?}: {report:?}");
            }
            assert_nothing_left(&mut host);
        }
    }
}

/// Forty lineages that fork and exit without an exec, for ten seconds if nobody ends them.
const STORM: &str = r#"use POSIX; $SIG{TERM} = "IGNORE"; $SIG{CHLD} = "IGNORE"; my $end = time + 10;
    for (1..40) { if (!fork) { POSIX::setsid(); while (time < $end) { my $p = fork; POSIX::_exit(0) if $p; } POSIX::_exit(0) } }
    open my $f, ">", "$ARGV[0]/ready"; sleep 600"#;

/// While one is to be spared, nothing can be struck blindly, and whoever is looked at for long has forked meanwhile.
#[test]
fn heavy_a_storm_beside_a_kept_program_ends_within_the_bound_needs_perl() {
    // A storm that wins must not take the machine with it. Root is not held by such a limit.
    let old = getrlimit(Resource::Nproc);
    setrlimit(Resource::Nproc, Rlimit { current: Some(1500), maximum: old.maximum })
        .expect("less than before");
    for cell in cells_with(Hold::Loop).into_iter().filter(|cell| cell.0 == User::Plain) {
        let plan = Plan::new(cell, Ending::End).options(["--keep", "kept-one"]);
        fs::write(plan.scratch().join("storm.pl"), STORM).expect("a script");
        fs::write(plan.scratch().join("kept-one"), "while :; do sleep 1000; done").expect("a script");
        let script = r#"setsid sh "$1/kept-one" </dev/null & exec perl "$1/storm.pl" "$1""#;
        let host = plan.script(script).start();
        host.bring_end();
        let report = host.report().expect("a report");
        assert!(report.verified && !report.kept.is_empty(), "{cell:?}: {report:?}");
        assert!(report.took < Duration::from_secs(2), "{cell:?}: {report:?}");
        host.mark.end_all().expect("the kept ones too");
    }
}

#[test]
fn heavy_each_of_many_kept_ones_is_named() {
    for cell in cells_with(Hold::Loop) {
        let plan = Plan::new(cell, Ending::End).options(["--keep", "kept-one"]);
        let body = r#"for i in $(seq 600); do sleep 600 & done; touch "$1/ready"; wait"#;
        fs::write(plan.scratch().join("kept-one"), body).expect("a script");
        let host = plan.script(r#"setsid sh "$1/kept-one" "$1" </dev/null & exec cat"#).start();
        host.bring_end();
        let report = host.report().expect("a report");
        assert_eq!((report.kept.len(), report.lists_cut, report.verified), (601, false, true), "{cell:?}");
        host.mark.end_all().expect("the kept ones too");
    }
}
