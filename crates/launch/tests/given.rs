//! A server is given the environment, folder and arguments of its description, no more and no less: on real processes,
//! as root and as a plain user.

#![expect(clippy::disallowed_methods, reason = "the mark finds what a host leaves")]

use std::time::Duration;

use moored_testkit::{MarkGuard, Scratch, User, example};

/// By when all is gone after the host's end.
const GONE: Duration = Duration::from_secs(5);

/// What a server says that is started by a host with these variables alone, in this folder.
struct Given {
    mark: MarkGuard,
    scratch: Scratch,
    user: User,
}

impl Given {
    fn all() -> impl Iterator<Item = Self> {
        let given = |user| Self { mark: MarkGuard::fresh(), scratch: Scratch::for_user(user), user };
        User::available().into_iter().map(given)
    }

    /// The output of the server that these words describe.
    fn says(&self, words: &[&str]) -> String {
        let host = example("moored-launch", "launch_host");
        let mut command = self.mark.wrapping().user(self.user).command(host, words);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("OURS", "1").env("TAKEN", "2");
        command.env("MOORED_RUNTIME_DIR", self.scratch.join("run")).current_dir(self.scratch.path());
        let output = command.output().expect("the host");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Its variables, as the kernel has them of the server itself.
    fn environment(&self, words: &[&str]) -> Vec<String> {
        let said = self.says(&[words, &["program=/bin/cat", "arg=/proc/self/environ"]].concat());
        let mut variables: Vec<String> = said.split_terminator('\0').map(str::to_owned).collect();
        variables.sort();
        variables
    }

    fn folder(&self, words: &[&str]) -> String {
        self.says(&[words, &["program=/bin/readlink", "arg=/proc/self/cwd"]].concat()).trim_end().to_owned()
    }

    fn assert_nothing_left(&self) {
        self.mark.wait_until_none(GONE).expect("nobody is left");
    }
}

#[test]
fn a_server_has_our_variables_with_the_changes_that_were_described() {
    for given in Given::all() {
        let runtime = format!("MOORED_RUNTIME_DIR={}", given.scratch.join("run").display());
        let ours = [runtime.as_str(), "OURS=1", "PATH=/usr/bin:/bin", "TAKEN=2"];
        assert_eq!(given.environment(&[]), ours, "no change is no change");
        let changed = given.environment(&["set=ADDED=a=b", "set=OURS=new", "remove=TAKEN", "remove=ABSENT"]);
        assert_eq!(changed, ["ADDED=a=b", runtime.as_str(), "OURS=new", "PATH=/usr/bin:/bin"]);
        given.assert_nothing_left();
    }
}

#[test]
fn a_server_with_an_environment_of_its_own_has_nothing_of_ours() {
    for given in Given::all() {
        assert_eq!(given.environment(&["set=LOST=x", "clear", "set=B=2", "set=A="]), ["A=", "B=2"]);
        assert_eq!(given.environment(&["clear"]), [""; 0]);
        given.assert_nothing_left();
    }
}

#[test]
fn a_server_runs_where_it_was_described_to_run_or_where_we_are() {
    for given in Given::all() {
        let here = given.scratch.path().to_str().expect("a plain path").to_owned();
        assert_eq!(given.folder(&[]), here);
        assert_eq!(given.folder(&["cwd=/usr"]), "/usr");
        assert_eq!(given.folder(&["cwd=.."]), "/tmp", "a relative one begins where we are");
        given.assert_nothing_left();
    }
}

#[test]
fn a_server_gets_its_arguments_as_they_are() {
    for given in Given::all() {
        let said = given.says(&["program=printf", "arg=[%s]", "arg=", "arg=a b", "arg=*", "arg=$OURS"]);
        assert_eq!(said, "[][a b][*][$OURS]");
        given.assert_nothing_left();
    }
}
