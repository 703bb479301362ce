//! What steers how much is sent: the controller of uTP, and one over the system's TCP.

use crate::failure::Failure;
use cede_carry::bench::ControllerSpec;
use cede_real::yielding::Yielding;
use cede_real::{StreamConfig, YieldingError};
use clap::Args;
use std::io::ErrorKind;

/// Which controllers connections have.
#[derive(Args, Clone, Debug)]
pub struct ControlArgs {
    /// The congestion controller of uTP (`cede list controllers`) [default: ledbat]
    #[arg(short = 'C', long = "controller", value_name = "NAME")]
    controller: Option<String>,
    /// The queueing delay that uTP aims at [default: the controller's, 100 ms for ledbat] [example: --utp-target-delay 25ms]
    #[arg(long, value_name = "TIME", visible_alias = "target")]
    utp_target_delay: Option<String>,
    /// Set a parameter of the controller; may be repeated [example: -s gain=0.5]
    #[arg(short = 's', long = "set", value_name = "PARAM=VALUE")]
    set: Vec<String>,
    /// Let TCP yield as well: a controller holds back what is sent, by round-trip times (ledbat++, ledbat, fledbat; Linux) [default: the system's alone]
    #[arg(long, value_name = "NAME")]
    tcp_controller: Option<String>,
    /// The queueing delay that TCP aims at, with ledbat++ where no other controller is named [default: the controller's, 60 ms for ledbat++] [example: --tcp-target-delay 25ms]
    #[arg(long, value_name = "TIME")]
    tcp_target_delay: Option<String>,
}

impl ControlArgs {
    /// How uTP streams are opened.
    pub fn stream_config(&self) -> Result<StreamConfig, Failure> {
        let target = self.utp_target_delay.iter().map(|value| Ok(("target".to_owned(), value.clone())));
        let set = self.set.iter().map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(Failure::Usage(format!("-s {text}: write PARAM=VALUE, such as -s gain=0.5"))),
        });
        let name = self.controller.clone().unwrap_or_else(|| "ledbat".to_owned());
        let spec = ControllerSpec { name, params: target.chain(set).collect::<Result<_, _>>()? };
        let choice = spec.choice().map_err(|error| Failure::Usage(format!("-C {}: {error}", spec.name)))?;
        Ok(StreamConfig { controller: choice, ..StreamConfig::default() })
    }

    /// What makes connections over TCP yield, where they are to.
    pub fn tcp_yields(&self) -> Result<Option<Yielding>, Failure> {
        if self.tcp_controller.is_none() && self.tcp_target_delay.is_none() {
            return Ok(None);
        }
        let name = self.tcp_controller.clone().unwrap_or_else(|| "ledbat++".to_owned());
        let target = self.tcp_target_delay.iter().map(|value| ("target".to_owned(), value.clone()));
        let spec = ControllerSpec { name, params: target.collect() };
        let choice = spec
            .choice()
            .map_err(|error| Failure::Usage(format!("--tcp-controller {}: {error}", spec.name)))?;
        Ok(Some(Yielding::new(choice).map_err(|error| refusal(&error))?))
    }
}

/// What to do about it.
fn refusal(error: &YieldingError) -> Failure {
    let YieldingError::System(why) = error else {
        return Failure::Usage(format!("--tcp-controller: {error}"));
    };
    let allow = match why.kind() {
        ErrorKind::Unsupported => "",
        _ => {
            "let the program have AF_NETLINK (systemd: RestrictAddressFamilies=, or what filters its system calls), load tcp_diag, or "
        }
    };
    let text = format!(
        "--tcp-controller: {error}; {allow}leave --tcp-controller and --tcp-target-delay out: --transport utp yields without"
    );
    Failure::of_system(text, ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    #[test]
    fn who_is_not_told_of_connections_hears_what_to_do() {
        let text = |why| refusal(&YieldingError::System(why)).text().unwrap().to_owned();
        // Address family not supported by protocol: systemd's answer.
        let filtered = text(Error::from_raw_os_error(97));
        assert!(filtered.contains("RestrictAddressFamilies=") && filtered.contains("tcp_diag"), "{filtered}");
        let elsewhere = text(Error::new(ErrorKind::Unsupported, "only Linux does"));
        assert!(!elsewhere.contains("NETLINK"), "{elsewhere}");
        assert!([filtered, elsewhere].iter().all(|text| text.contains("leave --tcp-controller")));
    }
}
