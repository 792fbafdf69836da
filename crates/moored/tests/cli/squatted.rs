//! Runtime folders that another user took first. Each test has `/tmp`, `/dev/shm` and the user database to itself, in a mount
//! namespace of its own, so that the real ones stay as they are.

use std::fmt::Write as _;
use std::process::Stdio;

use moored_testkit::bins::bin_of;
use moored_testkit::{MarkGuard, User};

use crate::home::{Said, said};

/// Who takes the folders: neither of the users that tests act as.
const SQUATTER: u32 = 47_112;

/// Runs `play` as this user, with the program at `$M`, a home at `/tmp/home` that only the user database knows of, and these
/// folders taken.
fn play(user: User, squatted: &[&str], known_home: bool, play: &str) -> Said {
    let (uid, gid) = (user.uid(), user.gid());
    let mut script = String::from("set -e; mount -t tmpfs -o mode=1777 shm /dev/shm\n");
    script.push_str("touch /dev/shm/program; mount --bind \"$MOORED\" /dev/shm/program\n");
    let home = if known_home { "/tmp/home" } else { "" };
    writeln!(script, "echo 'me:x:{uid}:{gid}::{home}:/bin/sh' > /dev/shm/passwd").expect("a text");
    script.push_str("chmod 644 /dev/shm/passwd; mount --bind /dev/shm/passwd /etc/passwd\n");
    script.push_str(
        "mount -t tmpfs -o mode=1777 tmp /tmp; test ! -d /run/user || mount -t tmpfs run /run/user\n",
    );
    writeln!(script, "mkdir -m 700 /tmp/home /tmp/state; chown {uid}:{gid} /tmp/home /tmp/state")
        .expect("a text");
    for folder in squatted {
        writeln!(script, "mkdir -m 700 {folder}-{uid}; chown {SQUATTER} {folder}-{uid}").expect("a text");
    }
    writeln!(script, "cd /tmp/home; exec setpriv --reuid {uid} --regid {gid} --clear-groups sh -c \"$PLAY\"")
        .expect("a text");
    let mark = MarkGuard::fresh();
    let args = ["-m", "--propagation", "private", "sh", "-c", &script];
    let mut command = mark.wrapping().user(User::Root).command("unshare", args);
    command
        .env("MOORED", bin_of("moored", "moored"))
        .env("PLAY", play)
        .env("M", "/dev/shm/program")
        .env("HOME", "/tmp/elsewhere")
        .env("MOORED_STATE_DIR", "/tmp/state")
        .env_remove("MOORED_RUNTIME_DIR")
        .stdin(Stdio::null());
    said(&mut command)
}

/// A run is started, listed and stopped. Prints its own words, the folder that it is in, and how `ps` went.
const ONE_RUN: &str = r#"
    mkfifo in; touch out
    $M run --name srv -- cat < in > out 2> run.err &
    exec 3> in
    echo hello >&3
    until grep -q hello out; do sleep 0.02; done
    ls /tmp/moored-*/*.run /dev/shm/moored-*/*.run .local/state/moored/run/*.run 2> /dev/null | xargs -n1 dirname
    $M ps -q > ids 2> ps.err; echo "ps exits $?, $(wc -l < ids) found, $(wc -l < ps.err) lines of warning"
    $M stop --all > stopped 2> /dev/null; echo "stop exits $?"
    exec 3>&-
    wait
    sed 's/^/run: /' run.err
    sed 's/^/ps: /' ps.err
"#;

#[test]
fn f11_a_taken_folder_is_passed_over_for_the_next_with_one_warning_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    std::thread::scope(|scope| {
        for user in User::available() {
            scope.spawn(move || {
                let uid = user.uid();
                let (tmp, shm) = (format!("/tmp/moored-{uid}"), format!("/dev/shm/moored-{uid}"));
                let free = play(user, &[], true, ONE_RUN);
                let expected = format!("{tmp}\nps exits 0, 1 found, 0 lines of warning\nstop exits 0\n");
                assert_eq!((free.stdout, free.stderr.as_str()), (expected, ""), "{user:?}");
                let cases: [(&[&str], &str); 2] = [
                    (&["/tmp/moored"], &shm),
                    (&["/tmp/moored", "/dev/shm/moored"], ".local/state/moored/run"),
                ];
                for (squatted, place) in cases {
                    let taken = play(user, squatted, true, ONE_RUN);
                    let expected =
                        format!("{place}\nps exits 0, 1 found, 1 lines of warning\nstop exits 0\n");
                    assert!(taken.stdout.starts_with(&expected), "{user:?}: {taken:?}");
                    let warning = format!("run: moored: `{tmp}` belongs to uid {SQUATTER} ");
                    let lines: Vec<&str> =
                        taken.stdout.lines().filter(|line| line.starts_with("run: ")).collect();
                    assert!(lines.len() == 1 && lines[0].starts_with(&warning), "{user:?}: {taken:?}");
                    assert!(lines[0].contains(place), "it names the place that is used: {taken:?}");
                }
            });
        }
    });
}

#[test]
fn f11_ps_does_not_fail_when_every_folder_is_taken_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    for user in User::available() {
        // A user whom the local database does not know has no fourth place.
        let play = play(
            user,
            &["/tmp/moored", "/dev/shm/moored"],
            false,
            "
            echo hello | $M run --name srv -- cat
            $M ps > rows; echo \"ps exits $?, $(wc -l < rows) line\"
            $M ps -a -q > ids; echo \"ps -a exits $?\"
        ",
        );
        let expected = "hello\nps exits 0, 1 line\nps -a exits 0\n";
        assert_eq!(play.stdout, expected, "{user:?}: {play:?}");
        assert!(play.stderr.contains("`ps` and `stop` will not find this server"), "{user:?}: {play:?}");
        assert_eq!(play.stderr.lines().count(), 3, "one line each: {user:?}: {play:?}");
    }
}

#[test]
fn f11_readers_look_in_every_folder_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    for user in User::available() {
        let play = play(
            user,
            &[],
            true,
            "
            mkfifo in; touch out; mkdir -p -m 700 .local/state/moored/run
            for folder in '' /dev/shm/moored-$(id -u) /tmp/home/.local/state/moored/run; do
                MOORED_RUNTIME_DIR=$folder $M run -- sh -c 'echo up; exec cat' < in >> out &
            done
            exec 3> in
            until [ $(grep -c up out) = 3 ]; do sleep 0.02; done
            $M ps -q | wc -l
            $M stop --all > stopped; echo \"$(grep -c verified stopped) stopped\"
            exec 3>&-; wait
        ",
        );
        assert_eq!(
            (play.stdout.as_str(), play.stderr.as_str()),
            ("3\n3 stopped\n", ""),
            "{user:?}: {play:?}"
        );
    }
}
