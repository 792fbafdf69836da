//! A bystander notices every way to be touched, and nothing else.

use moored_testkit::innocents::Group;
use moored_testkit::{Bystander, User};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::group;

fn signal(bystander: &Bystander, signal: Signal) {
    // Safe by pid: it is our own child, and reaped by nobody but its drop and a testimony after its death.
    kill_process(Pid::from_raw(bystander.pid().cast_signed()).expect("a pid"), signal).expect("alive");
}

#[test]
fn an_untouched_bystander_says_so_again_and_again() {
    for user in User::available() {
        let mut bystander = Bystander::spawn_as(user, Group::Own);
        for _ in 0..3 {
            bystander.assert_untouched();
        }
    }
}

#[test]
fn every_catchable_signal_is_told() {
    for caught in
        [Signal::TERM, Signal::HUP, Signal::INT, Signal::USR1, Signal::CONT, Signal::WINCH, Signal::CHILD]
    {
        let mut bystander = Bystander::spawn();
        signal(&bystander, caught);
        assert_eq!(bystander.testimony(), Err(format!("it received signals {}", caught.as_raw())));
    }
}

#[test]
fn kill_is_seen_in_its_end() {
    let mut bystander = Bystander::spawn();
    signal(&bystander, Signal::KILL);
    let evidence = bystander.testimony().unwrap_err();
    assert!(evidence.contains("signal: 9"), "{evidence}");
}

#[test]
fn stop_and_cont_leave_a_trace() {
    let mut bystander = Bystander::spawn();
    signal(&bystander, Signal::STOP);
    signal(&bystander, Signal::CONT);
    assert_eq!(bystander.testimony(), Err("it received signals 18".to_owned()));
}

#[test]
fn groups_are_as_asked() {
    let own = Bystander::spawn_as(User::current(), Group::Own);
    assert_eq!(group(own.pid()), u64::from(own.pid()));
    let beside = Bystander::spawn_as(User::current(), Group::Of(own.pid()));
    assert_eq!(group(beside.pid()), u64::from(own.pid()));
    let inherited = Bystander::spawn();
    assert_eq!(group(inherited.pid()), group(std::process::id()));
}
