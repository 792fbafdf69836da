//! Nothing I start outlives me.
