//! What a sweep takes for life: a keeper that is there, and not a lock alone.

use moored_testkit::wait::wait_for_file;
use rustix::process::Signal;

use crate::common::ending::Ending;
use crate::common::hold::{Hold, cells_with};
use crate::common::host::Plan;
use crate::common::traces::{assert_nothing_left, sweep_as, wait_until_stopped};
use crate::common::{DEADLINE, send};

/// A daemon waits for the lock of its own record, and has it when all who kept the session are killed.
#[test]
fn a_record_that_is_locked_by_what_is_left_of_its_session_is_swept() {
    // The one who took the lock keeps it, or leaves it to his child.
    for keeper in ["touch $1/locked; exec sleep 600", "kill -9 $PPID; touch $1/locked; exec sleep 600"] {
        for cell in cells_with(Hold::Loop) {
            let script = format!(
                r#"setsid flock "$1"/run/*.session sh -c '{keeper}' sh "$1" & touch "$1/ready"; exec cat"#
            );
            let mut host = Plan::new(cell, Ending::HostKilled).script(&script).start();
            host.kill_all_of_ours();
            host.exit();
            wait_for_file(&host.scratch.join("locked"), DEADLINE);
            sweep_as(cell.0, &host.runtime());
            assert_nothing_left(&mut host);
        }
    }
}

/// Stopped guardians hold the lock, and guard nothing.
#[test]
fn a_sweep_sets_stopped_guardians_of_a_dead_owner_going() {
    for cell in cells_with(Hold::Loop) {
        // Long enough to be stopped while they wait for the server; after the owner's death, which would set them going.
        let plan = Plan::new(cell, Ending::HostKilled).options(["--grace", "2000"]);
        let mut host = plan.misbehave(["--daemon", "--ignore-eof"]).start();
        let who = host.who();
        host.bring_end();
        host.exit();
        for guardian in [who.outer, who.inner] {
            assert!(send(&guardian, Signal::STOP));
            wait_until_stopped(guardian);
        }
        sweep_as(cell.0, &host.runtime());
        assert_nothing_left(&mut host);
    }
}
