//! What a guardian knows and says is its own.

use std::fs;

use moored_containment::EndReason;
use moored_testkit::User;

use crate::common::ending::Ending;
use crate::common::hold::{Hold, cells, cells_with};
use crate::common::host::Plan;
use crate::common::traces::assert_nothing_left;

/// The board is behind `/proc/PID/fd`, and whoever can open it can write a report.
#[test]
fn a_plain_users_server_cannot_look_into_its_guardians() {
    for cell in cells().into_iter().filter(|cell| cell.0 == User::Plain) {
        let script = r#"set -- "$1" "$PPID" "$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"
            for guardian in "$2" "$3"; do
                ls "/proc/$guardian/fd" && touch "$1/seen"; readlink "/proc/$guardian/exe" && touch "$1/seen"
            done 2>/dev/null; touch "$1/ready"; exec cat"#;
        let mut host = Plan::new(cell, Ending::End).script(script).start();
        assert!(!host.scratch.join("seen").exists(), "{cell:?}");
        host.bring_end();
        assert!(host.report().expect("a report").verified, "{cell:?}");
        assert_nothing_left(&mut host);
    }
}

/// Root may take the guardian's socket, and says on it that all is over.
#[test]
fn a_forged_word_of_the_end_is_not_taken_for_one_needs_perl() {
    const FORGER: &str = r#"my $inner = getppid; my $held = syscall(434, $inner, 0);
        for my $link (glob "/proc/$inner/fd/*") {
            next unless (readlink($link) // "") =~ /^socket/; my ($n) = $link =~ /(\d+)$/;
            my $taken = syscall(438, $held, $n + 0, 0); my $word = pack "Q", 4;
            syscall(44, $taken, $word, 8, 0, 0, 0) }
        open my $f, ">", "$ARGV[0]/ready"; close $f; sleep 600"#;
    for cell in cells_with(Hold::Loop).into_iter().filter(|cell| cell.0 == User::Root) {
        let plan = Plan::new(cell, Ending::InnerKilled);
        fs::write(plan.scratch().join("forger.pl"), FORGER).expect("a script");
        let mut host = plan.script(r#"setsid sleep 600 & exec perl "$1/forger.pl" "$1""#).start();
        host.go();
        let report = host.report().expect("a report");
        assert_eq!((report.reason, report.verified), (EndReason::GuardianDied, true), "{report:?}");
        assert_nothing_left(&mut host);
    }
}
