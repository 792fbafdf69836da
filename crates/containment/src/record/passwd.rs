//! A user's home by the local user database, `/etc/passwd`. Clients change `$HOME`, or clear it.
//!
//! The file is read as it is: a user who is known to LDAP or another service alone has no home here.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The home of the user with this number, if the machine's own user database has one.
#[must_use]
pub fn passwd_home(uid: u32) -> Option<PathBuf> {
    home_in(&std::fs::read("/etc/passwd").ok()?, uid)
}

fn home_in(passwd: &[u8], uid: u32) -> Option<PathBuf> {
    passwd.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let theirs: u32 = std::str::from_utf8(fields.nth(2)?).ok()?.parse().ok()?;
        // After the group and the full name.
        let home = PathBuf::from(OsString::from_vec(fields.nth(2)?.to_vec()));
        (theirs == uid && home.is_absolute()).then_some(home)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_found_by_its_users_number() {
        let passwd =
            b"root:x:0:0:root:/root:/bin/sh\nbroken line\nu:x:10:10::/home/u:/bin/sh\nv:x:11:11:::\n+::::::";
        assert_eq!(home_in(passwd, 0), Some("/root".into()));
        assert_eq!(home_in(passwd, 10), Some("/home/u".into()));
        assert_eq!(home_in(passwd, 11), None, "an empty home is none");
        assert_eq!(home_in(passwd, 1), None, "a user of another service has no line");
    }
}
