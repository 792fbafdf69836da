//! The demo, as root and as a plain user, and when it is cut short at either of its killings.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moored_testkit::bins::bin_of;
use moored_testkit::{Mark, MarkGuard, Scratch, User};

use crate::home::said;

fn demo(mark: Mark, user: User, folder: &Scratch) -> Command {
    let mut command = mark.wrapping().user(user).command(bin_of("moored", "moored"), ["demo"]);
    command
        .current_dir(folder.path())
        .env("MOORED_RUNTIME_DIR", folder.join("run"))
        .env("MOORED_STATE_DIR", folder.join("state"))
        .stdin(Stdio::null());
    command
}

#[test]
fn the_demo_shows_what_is_left_and_leaves_nothing() {
    // Built before the time counts.
    bin_of("moored", "moored");
    std::thread::scope(|scope| {
        for user in User::available() {
            scope.spawn(move || {
                let (mark, folder) = (MarkGuard::fresh(), Scratch::for_user(user));
                let begun = Instant::now();
                let said = said(&mut demo(*mark, user, &folder));
                assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
                assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{user:?}: {said:?}");
                assert!(
                    said.stdout.contains("plain    3 processes, still there"),
                    "{user:?}: {}",
                    said.stdout
                );
                assert!(said.stdout.contains("moored   0 processes, after "), "{user:?}: {}", said.stdout);
                assert!(!said.stdout.contains('\u{1b}'), "it is not painted in a pipe");
                let left = mark.wait_until_none(Duration::from_secs(2));
                assert!(left.is_ok(), "{user:?}: {left:?}");
            });
        }
    });
}

#[test]
fn a_demo_that_is_killed_leaves_nothing_either() {
    std::thread::scope(|scope| {
        for (user, killings) in User::available().into_iter().flat_map(|user| [(user, 1), (user, 2)]) {
            scope.spawn(move || {
                let (mark, folder) = (MarkGuard::fresh(), Scratch::for_user(user));
                let mut demo = demo(*mark, user, &folder).stdout(Stdio::piped()).spawn().expect("the demo");
                let lines = BufReader::new(demo.stdout.take().expect("piped"))
                    .lines()
                    .map(|line| line.expect("text"));
                let seen = lines.filter(|line| line.contains("SIGKILL to the client")).take(killings).count();
                assert_eq!(seen, killings);
                assert!(mark.alive().len() > 3, "{:?}", mark.alive());
                demo.kill().expect("our own child");
                demo.wait().expect("its end");
                let left = mark.wait_until_none(Duration::from_secs(5));
                assert!(left.is_ok(), "{user:?}: {left:?}");
            });
        }
    });
}
