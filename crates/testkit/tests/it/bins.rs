//! Programs are found, and any user can run them.

use std::os::unix::fs::MetadataExt as _;

use moored_testkit::{Scratch, User, bin};

#[test]
fn a_copy_is_open_to_all_and_writable_by_its_owner_alone() {
    let copy = bin("misbehave");
    assert_eq!(copy.file_name().and_then(|name| name.to_str()), Some("misbehave"));
    let mut path = copy.as_path();
    assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o755);
    for _ in 0..2 {
        path = path.parent().expect("a folder");
        assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o755);
    }
}

#[test]
fn many_threads_get_one_copy() {
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| bin("marked"))).collect();
    let paths: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a path")).collect();
    assert!(paths.iter().all(|path| *path == paths[0] && path.exists()));
}

#[test]
fn a_scratch_belongs_to_its_user_and_goes() {
    for user in User::available() {
        let scratch = Scratch::for_user(user);
        let path = scratch.path().to_owned();
        let metadata = path.metadata().expect("there");
        assert_eq!((metadata.uid(), metadata.gid()), (user.uid(), user.gid()));
        drop(scratch);
        assert!(!path.exists());
    }
}
