//! Random choices that can be made again: a test that plays something else each time prints its seed when it fails.

use crate::Mark;

/// Makes the same choices for the same seed, on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Choices by this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next of splitmix64.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.roll().is_multiple_of(count)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end as u64).expect("below a usize")
    }

    /// One of a list.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The seed in this environment variable, or another one each time.
///
/// # Panics
///
/// If the variable is no number.
pub fn seed(variable: &str) -> u64 {
    let given = std::env::var(variable).ok();
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: no number"));
    given.map_or_else(|| Mark::fresh().value(), parse)
}
