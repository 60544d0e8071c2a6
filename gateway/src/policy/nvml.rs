//! The device's state from NVIDIA's management library, which comes with the
//! driver and is loaded when it is first asked.
//!
//! NVML tells the share of time with a kernel running and with memory in use
//! (in percent, over the driver's last period), and memory in bytes. How many
//! multiprocessors had work it does not tell; a DCGM exporter does.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use tidegate_policy::memory::{Memory, Unit};
use tidegate_policy::state::DeviceSample;

/// One GPU.
#[derive(Debug)]
pub(super) struct Device {
    nvml: Nvml,
    index: u32,
}

impl Device {
    /// Loads the library and looks for the GPU.
    ///
    /// # Errors
    /// There is no such library, or no such GPU.
    pub(super) fn new(index: u32) -> Result<Self, NvmlError> {
        let nvml = Nvml::init()?;
        nvml.device_by_index(index)?;
        Ok(Self { nvml, index })
    }

    /// The state now. What the GPU does not tell is left out.
    pub(super) fn read(&self) -> DeviceSample {
        let Ok(device) = self.nvml.device_by_index(self.index) else {
            return DeviceSample::default();
        };
        let percent = |value: u32| f64::from(value.min(100)) / 100.0;
        let busy = device.utilization_rates().ok();
        let memory = device.memory_info().ok();
        DeviceSample {
            utilisation: busy.as_ref().map(|busy| percent(busy.gpu)),
            sm_utilisation: None,
            memory_bandwidth: busy.as_ref().map(|busy| percent(busy.memory)),
            memory: memory.and_then(|all| Memory::new(all.used, all.total, Unit::DeviceBytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_library_says_so() {
        match Device::new(0) {
            Ok(device) => assert!(device.read().memory.is_some()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        assert!(Device::new(4_096).is_err());
    }
}
