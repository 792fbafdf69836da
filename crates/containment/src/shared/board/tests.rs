//! The lists of the board.

use super::*;

#[test]
fn a_list_that_is_full_says_that_there_is_more() {
    let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let board = Board(&words);
    for pid in 1..=MOST_SURVIVORS as i32 {
        board.add_survivor(pid, 7, survived::UNKNOWN);
        board.add_survivor(pid, 7, survived::UNKNOWN);
    }
    for pid in 1..=MOST_KEPT as i32 {
        board.add_kept(pid, 7, 3);
    }
    board.add_kept(1, 7, 3);
    assert_eq!((board.kept_count(), board.survivor_count()), (MOST_KEPT, MOST_SURVIVORS));
    assert_eq!(board.get(Word::ListsCut), 0, "all of them are listed");
    board.add_survivor(i32::MAX, 7, survived::UNKNOWN);
    assert_eq!(
        (board.get(Word::ListsCut), board.survivor(MOST_SURVIVORS - 1)[0]),
        (1, MOST_SURVIVORS as u64)
    );
    board.set(Word::ListsCut, 0);
    board.add_kept(i32::MAX, 7, 3);
    assert_eq!((board.get(Word::ListsCut), board.kept(MOST_KEPT - 1)), (1, [MOST_KEPT as u64, 7, 3]));
}
