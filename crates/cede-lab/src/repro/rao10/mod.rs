//! x

pub mod setting;
