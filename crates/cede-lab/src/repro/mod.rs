//! Papers, reproduced.
pub mod measure;
pub mod setting;
