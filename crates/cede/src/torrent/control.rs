//! What steers how much is sent: the controller of uTP, and one over the system's TCP.

use crate::failure::Failure;
use cede_carry::bench::ControllerSpec;
use cede_real::yielding::Yielding;
use cede_real::{StreamConfig, YieldingError};
use clap::Args;

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
        let yielding = Yielding::new(choice).map_err(|error| match error {
            YieldingError::System(why) => Failure::of_system(
                format!("--tcp-controller: {}", YieldingError::System(why)),
                std::io::ErrorKind::Unsupported,
            ),
            other => Failure::Usage(format!("--tcp-controller: {other}")),
        })?;
        Ok(Some(yielding))
    }
}
