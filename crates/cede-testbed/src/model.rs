//! The models of the kernel's congestion controls.

use cede_cc::{ParamValue, Params};
use cede_lab::scenario::ControllerSpec;

/// The controller that stands for the kernel's of this name, with the rules that the kernel has.
pub(crate) fn of_kernel(name: &str) -> ControllerSpec {
    let params = match name {
        "cubic" => Params::new().with("rules", ParamValue::Word("linux".to_string())),
        _ => Params::new(),
    };
    ControllerSpec { name: name.to_string(), params }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_that_is_offered_has_a_model() {
        for name in ["cubic", "reno", "bbr"] {
            let ControllerSpec { name, params } = of_kernel(name);
            let path = cede_cc::Path { mss_bytes: 1448, initial_cwnd_bytes: 14_480, max_cwnd_bytes: 1 << 20 };
            assert_eq!(cede_cc::registry::build(&name, &params, &path).unwrap().name(), name);
        }
    }
}
