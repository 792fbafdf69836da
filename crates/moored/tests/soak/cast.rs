//! Who plays: one number makes one session, its server's manners and its end. Pure: the same number makes the same.

use serde_json::{Value, json};

use moored_testkit::Dice;

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// The client closes the server's input and waits.
    Eof,
    /// The client exits without a word.
    ClientExits,
    ClientKilled,
    MooredTerminated,
    MooredKilled,
    OuterKilled,
    InnerKilled,
    /// `moored stop ID`.
    Stopped,
    /// The server exits before it has answered anything.
    ServerExits,
    /// It dies by a signal then.
    ServerDies,
    /// It crashes over a call.
    ServerCrashes,
}

impl Ending {
    pub(crate) const ALL: [Self; 11] = [
        Self::Eof,
        Self::ClientExits,
        Self::ClientKilled,
        Self::MooredTerminated,
        Self::MooredKilled,
        Self::OuterKilled,
        Self::InnerKilled,
        Self::Stopped,
        Self::ServerExits,
        Self::ServerDies,
        Self::ServerCrashes,
    ];

    /// Whether what was written down as the cause is what happened. A client that is gone has closed its pipe too: which
    /// of both is seen first is chance. A SIGTERM before there is anything to end is moored's own end.
    pub(crate) fn fits(self, moment: Moment, cause: &Value) -> bool {
        let causes: &[Value] = &match self {
            Self::MooredTerminated if moment == Moment::Early => {
                vec![json!({ "signal": 15 }), json!("moored-killed")]
            }
            Self::Eof => vec![json!("client-eof")],
            Self::ClientExits | Self::ClientKilled => vec![json!("client-eof"), json!("client-gone")],
            Self::MooredTerminated => vec![json!({ "signal": 15 })],
            Self::MooredKilled => vec![json!("moored-killed")],
            Self::Stopped => vec![json!("operator")],
            Self::OuterKilled
            | Self::InnerKilled
            | Self::ServerExits
            | Self::ServerDies
            | Self::ServerCrashes => vec![json!("server-exited")],
        };
        causes.contains(cause)
    }

    fn is_the_servers(self) -> bool {
        matches!(self, Self::ServerExits | Self::ServerDies | Self::ServerCrashes)
    }

    /// Whether it can come as soon as moored is there, and need not wait for anything else.
    fn can_be_early(self) -> bool {
        matches!(self, Self::ClientKilled | Self::MooredKilled | Self::MooredTerminated)
    }

    /// Whether it can come over a server that is asleep, or about to be: there are no guardians then.
    fn can_meet_a_sleeper(self) -> bool {
        !self.is_the_servers() && !matches!(self, Self::OuterKilled | Self::InnerKilled)
    }
}

/// When the end comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// As soon as moored is to be seen, whatever it is doing then.
    Early,
    /// When the server serves.
    Serving,
    /// After it has slept and was woken.
    Woken,
}

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Unique in a soak, and the server's name.
    pub(crate) name: String,
    pub(crate) sockets: bool,
    /// Of `moored run`.
    pub(crate) options: Vec<&'static str>,
    /// Of `misbehave`.
    pub(crate) switches: Vec<&'static str>,
    pub(crate) moment: Moment,
    pub(crate) ending: Ending,
}

/// What a server may do besides serving: at most a few of these at once.
const MANNERS: [&[&str]; 17] = [
    &["--ignore-eof"],
    &["--ignore-term"],
    &["--ignore-eof", "--ignore-term"],
    &["--spin-after-eof"],
    &["--die-on-eof-after", "50"],
    &["--exit-code", "7"],
    &["--block-stderr", "200000"],
    &["--slow-start", "30"],
    &["--grandchild"],
    &["--daemon"],
    &["--clean-daemon"],
    &["--own-group"],
    &["--own-session-child"],
    &["--stopped-child"],
    &["--tree", "4", "--tree-ignores-term"],
    &["--chain", "4"],
    &["--wrap-shell"],
];

pub(crate) fn part(seed: u64, number: usize) -> Part {
    let mut dice = Dice::new(seed ^ (number as u64).wrapping_mul(0xd6e8_feb8_6659_fd93));
    let ending = dice.pick(&Ending::ALL);
    let moment = match dice.roll() % 5 {
        0 if ending.can_be_early() => Moment::Early,
        1 if ending.can_meet_a_sleeper() => Moment::Woken,
        _ => Moment::Serving,
    };
    let mut switches = Vec::new();
    for _ in 0..dice.roll() % 4 {
        let manner = dice.pick(&MANNERS);
        if !switches.contains(&manner[0]) {
            switches.extend(manner);
        }
    }
    if dice.one_in(25) {
        switches.extend(["--storm", "2", "--storm-period", "2000"]);
    }
    match ending {
        Ending::ServerExits => switches.extend(["--exit-now", dice.pick(&["0", "1", "9"])]),
        Ending::ServerDies => switches.extend(["--die-by", dice.pick(&["6", "9", "11"])]),
        Ending::ServerCrashes => switches.extend(["--crash-after", "1"]),
        _ => {}
    }
    let mut options = vec!["--grace", "150ms", "--kill-after", "150ms"];
    options.extend(match moment {
        Moment::Woken => ["--idle", "80ms"],
        Moment::Early | Moment::Serving => ["--idle", dice.pick(&["auto", "off", "1h"])],
    });
    Part { name: format!("soak-{number:05}"), sockets: dice.one_in(2), options, switches, moment, ending }
}
