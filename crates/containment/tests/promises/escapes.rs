//! How a server hides what it starts, or resists its own end.

/// One server of the matrix.
#[derive(Debug)]
pub(crate) struct Escape {
    pub(crate) name: &'static str,
    /// For `misbehave`.
    pub(crate) switches: &'static [&'static str],
    /// For the owner.
    pub(crate) owner: &'static [&'static str],
    /// Somebody in it stops itself once it is ready.
    pub(crate) stops: bool,
    /// The server itself can end by itself.
    pub(crate) can_exit: bool,
}

const fn escape(name: &'static str, switches: &'static [&'static str]) -> Escape {
    Escape { name, switches, owner: &[], stops: false, can_exit: true }
}

/// Every escape of the matrix.
pub(crate) const ESCAPES: [Escape; 17] = [
    escape("polite", &[]),
    escape("ignore-eof", &["--ignore-eof"]),
    escape("ignore-eof-and-term", &["--ignore-eof", "--ignore-term"]),
    escape("spin-after-eof", &["--spin-after-eof"]),
    Escape {
        owner: &["--unread-output"],
        ..escape("block-output", &["--block-stdout", "--block-stderr", "1000000"])
    },
    escape("grandchild", &["--grandchild"]),
    escape("daemon", &["--daemon"]),
    escape("clean-daemon", &["--clean-daemon"]),
    escape("own-group", &["--own-group"]),
    escape("own-session-child", &["--own-session-child"]),
    Escape { stops: true, ..escape("stopped-child", &["--stopped-child"]) },
    Escape { stops: true, can_exit: false, ..escape("stop-self", &["--stop-self"]) },
    escape("wrap-shell", &["--wrap-shell"]),
    escape("tree-of-20", &["--tree", "20", "--tree-ignores-term"]),
    escape("chain-of-20", &["--chain", "20"]),
    escape("storm-of-10", &["--storm", "10"]),
    Escape {
        stops: true,
        ..escape(
            "everything-at-once",
            &[
                "--ignore-eof",
                "--ignore-term",
                "--wrap-shell",
                "--grandchild",
                "--daemon",
                "--clean-daemon",
                "--own-group",
                "--own-session-child",
                "--stopped-child",
                "--tree",
                "6",
                "--tree-ignores-term",
                "--chain",
                "4",
                "--storm",
                "2",
            ],
        )
    },
];
