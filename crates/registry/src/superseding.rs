//! Whether a newer instance has taken a server's place for the same client. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run_id::RunId;
use crate::run_info::{Origin, RunInfo};

/// The entries of one config are started together. Where the same command comes up with another environment so much
/// later, the entry was edited.
pub const APART: Duration = Duration::from_mins(1);

/// Who has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superseded {
    /// The newer `run`.
    pub by: RunId,
    /// Whether it was started from an edited entry: the same command in the same folder, with another environment.
    pub config_changed: bool,
}

impl RunInfo {
    /// A newer `run` among these that has taken this one's place: of the same entry for the same client, or of an entry
    /// that was edited, which is one that showed up at least `apart` later.
    ///
    /// A server of a `moored-client` set neither takes a place nor loses one: its set knows whether it is wanted, and a program
    /// may have the same server in several sets on purpose.
    pub fn superseded_by<'a>(
        &self,
        all: impl IntoIterator<Item = &'a Self>,
        apart: Duration,
    ) -> Option<Superseded> {
        if self.origin == Origin::Client {
            return None;
        }
        let client = self.client.as_ref()?.identity?;
        let is_for_client =
            |other: &&Self| other.client.as_ref().and_then(|other| other.identity) == Some(client);
        let is_relayed = |other: &&Self| other.origin != Origin::Client;
        let siblings: Vec<&Self> = all.into_iter().filter(is_relayed).filter(is_for_client).collect();
        let newer = || siblings.iter().filter(|other| other.order() > self.order());
        if let Some(same) = newer().find(|other| other.entry_key == self.entry_key) {
            return Some(Superseded { by: same.run, config_changed: false });
        }
        let is_edited = |other: &&&Self| {
            let variant = siblings.iter().filter(|sibling| sibling.entry_key == other.entry_key);
            let first = variant.map(|sibling| sibling.began()).min().unwrap_or_default();
            first >= self.began() + apart
        };
        newer()
            .filter(|other| other.server_key == self.server_key && other.cwd == self.cwd)
            .find(is_edited)
            .map(|edited| Superseded { by: edited.run, config_changed: true })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use moored_containment::ProcessIdentity;

    use super::*;
    use crate::run_info::Client;
    use moored_launch::Key;

    /// A session of an entry that began that many seconds after boot. All are in one process, which is older.
    fn run(entry: u64, seconds: u64) -> RunInfo {
        let us = ProcessIdentity::of(std::process::id()).expect("us");
        let key = |number: u64| serde_json::from_value::<Key>(number.into()).expect("a key");
        RunInfo {
            run: RunId::generate(),
            moored: ProcessIdentity { start_ticks: 1, ..us },
            moored_version: "0".into(),
            name: "srv".into(),
            command: vec!["srv".into()],
            cwd: "/".into(),
            server_key: key(1),
            entry_key: key(entry),
            client: Some(Client { pid: us.pid, identity: Some(us), name: "codex".into() }),
            client_holds_stdin: true,
            origin: Origin::Run,
            began_ms: Some(seconds * 1000),
            session: None,
            started_at: Timestamp::UNIX_EPOCH,
            log_file: None,
            pid_file: None,
            max_instances: None,
        }
    }

    fn of(all: &[RunInfo]) -> Vec<Option<(usize, bool)>> {
        let at = |run: RunId| all.iter().position(|info| info.run == run).expect("one of them");
        let judged = all.iter().map(|info| info.superseded_by(all, APART));
        judged.map(|newer| newer.map(|newer| (at(newer.by), newer.config_changed))).collect()
    }

    #[test]
    fn a_newer_instance_of_the_same_entry_takes_the_place_at_once() {
        assert_eq!(of(&[run(1, 10), run(1, 11)]), [Some((1, false)), None]);
    }

    #[test]
    fn entries_of_one_config_that_share_a_command_do_not_take_each_others_place() {
        // Twice, as for two sessions of one client.
        let all = [run(1, 10), run(2, 11), run(1, 500), run(2, 501)];
        assert_eq!(of(&all), [Some((2, false)), Some((3, false)), None, None]);
    }

    #[test]
    fn an_edited_entry_takes_the_place_of_what_it_was() {
        assert_eq!(of(&[run(1, 10), run(2, 200)]), [Some((1, true)), None]);
    }

    #[test]
    fn another_client_or_another_server_takes_nobodys_place() {
        let strangers = [
            RunInfo { client: None, ..run(1, 200) },
            RunInfo { cwd: "/tmp".into(), ..run(2, 200) },
            RunInfo { server_key: serde_json::from_str("9").expect("a key"), ..run(3, 200) },
        ];
        for stranger in strangers {
            assert_eq!(of(&[run(1, 10), stranger])[0], None);
        }
    }

    #[test]
    fn sessions_of_one_process_are_ordered_by_their_own_starts_and_not_by_their_ids() {
        // The one with the lower id began later, as after a step of the wall clock.
        let mut ids = [RunId::generate(), RunId::generate()];
        ids.sort();
        let (later, earlier) = (RunInfo { run: ids[0], ..run(1, 20) }, RunInfo { run: ids[1], ..run(1, 10) });
        assert_eq!(later.moored, earlier.moored);
        assert_eq!(of(&[later, earlier]), [None, Some((0, false))]);
    }

    #[test]
    fn a_registration_of_an_older_version_is_ordered_by_the_start_of_its_process() {
        let older = run(1, 10);
        let mut text = serde_json::to_value(&older).expect("JSON");
        let fields = text.as_object_mut().expect("an object");
        assert!(["origin", "began_ms"].iter().all(|name| fields.remove(*name).is_some()));
        fields["moored"]["start_ticks"] = (15 * rustix::param::clock_ticks_per_second()).into();
        let read: RunInfo = serde_json::from_value(text).expect("what is missing has a default");
        assert_eq!((read.origin, read.began()), (Origin::Run, Duration::from_secs(15)));
        assert_eq!(of(&[run(1, 10), read.clone(), run(1, 20)])[..2], [Some((1, false)), Some((2, false))]);
    }

    #[test]
    fn a_server_of_a_client_library_neither_takes_a_place_nor_loses_one() {
        let of_library = |seconds| RunInfo { origin: Origin::Client, ..run(1, seconds) };
        assert_eq!(of(&[run(1, 10), of_library(20)]), [None, None]);
        assert_eq!(of(&[of_library(10), of_library(20), run(1, 30)]), [None, None, None]);
    }
}
