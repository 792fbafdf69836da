//! S10 again, at random times: moored, its client, or a guardian is killed anywhere between the start of a session and its end.
//!
//! Each session is another one each time, and `MOORED_KILLS_SEED` makes the same ones again. `MOORED_TEST_FULL=1` plays 200 for
//! each user and victim, else there are a few of each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::{Dice, User, dice};
use rustix::process::Signal;

use crate::client_goes::STUBBORN;
use crate::common::client::Client;
use crate::common::playing::{Playing, Seen};
use crate::common::scene::Scene;
use crate::common::{AFTER_ANYTHING, AFTER_TERM};

const SEED: &str = "MOORED_KILLS_SEED";
/// Sessions of each user by default.
const SAMPLE: u64 = 5;
/// From the start of the client. A session of a client that closes at once is over by then, on a machine that is not busy.
const WINDOW: Duration = Duration::from_millis(600);

#[test]
fn s10_moored_killed_at_any_time() {
    play(Signal::KILL, AFTER_ANYTHING, |_, _, seen| vec![seen.moored]);
}

#[test]
fn s10_moored_and_its_client_killed_at_any_time() {
    play(Signal::KILL, AFTER_ANYTHING, |dice, playing, seen| {
        let mut both = vec![seen.moored, playing.try_client()];
        if dice.one_in(2) {
            both.reverse();
        }
        both
    });
}

#[test]
fn s10_moored_terminated_at_any_time() {
    play(Signal::TERM, AFTER_TERM, |_, _, seen| vec![seen.moored]);
}

#[test]
fn s10_a_guardian_killed_at_any_time() {
    play(Signal::KILL, AFTER_ANYTHING, |dice, _, seen| {
        vec![if dice.one_in(2) { seen.outer } else { seen.inner }]
    });
}

type Victims = fn(&mut Dice, &Playing, &Seen) -> Vec<Option<ProcessIdentity>>;

fn play(signal: Signal, bound: Duration, victims: Victims) {
    let seed = dice::seed(SEED);
    let full = std::env::var("MOORED_TEST_FULL").is_ok_and(|value| value == "1");
    let mut killed = 0;
    for (user, number) in User::available()
        .into_iter()
        .flat_map(|user| (0..if full { 200 } else { SAMPLE }).map(move |number| (user, number)))
    {
        let dice = Dice::new(seed.wrapping_add(number));
        let played = catch_unwind(AssertUnwindSafe(|| session(user, dice, signal, bound, victims)));
        killed += usize::from(played.unwrap_or_else(|_| panic!("{SEED}={seed}, {user:?}, session {number}")));
    }
    assert!(killed > 0, "{SEED}={seed}: every session was over before its time");
}

/// Plays one session; whether there was somebody to signal.
fn session(user: User, mut dice: Dice, signal: Signal, bound: Duration, victims: Victims) -> bool {
    let client = dice.pick(&Client::OWN);
    let mut playing = client.start(Scene::new(user).hasty().misbehave(STUBBORN));
    let began = Instant::now();
    if dice.one_in(2) {
        // As soon as it has its server: then the time may fall into the end of the session.
        playing.order("close");
    }
    let time = WINDOW.mul_f64(dice.below(1000) as f64 / 1000.0);
    let found = loop {
        let seen = playing.look();
        let found = victims(&mut dice.clone(), &playing, &seen);
        let is_over = playing.has_ended();
        if is_over || (began.elapsed() >= time && found.iter().all(Option::is_some)) {
            break found;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let found: Vec<ProcessIdentity> = found.into_iter().flatten().collect();
    playing.send_all(&found, signal);
    // A client that lives may be the last one.
    let client = playing.try_client().map(|client| client.pid);
    playing.assert_gone_but(bound, |survivor| Some(survivor.pid) == client);
    playing.scene.assert_tidied_up();
    !found.is_empty()
}
