//! Papers whose experiments are run again, one module each.

pub mod lcn10;
pub mod ledbatpp;
