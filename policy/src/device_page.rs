//! What a DCGM exporter's page says of each GPU.
//!
//! | field | read as |
//! | --- | --- |
//! | `DCGM_FI_DEV_GPU_UTIL` | utilisation, in percent |
//! | `DCGM_FI_PROF_SM_ACTIVE` | share of the multiprocessors with work |
//! | `DCGM_FI_PROF_DRAM_ACTIVE` | share of the memory bandwidth; without it `DCGM_FI_DEV_MEM_COPY_UTIL`, in percent |
//! | `DCGM_FI_DEV_FB_USED`, `_FB_FREE`, `_FB_RESERVED` | memory in MiB; all of it is their sum |
//!
//! Names, units and labels are those of NVIDIA's documentation of the exporter.
//! DCGM writes values near 2⁶³ where a GPU does not support a field; these, and
//! shares above 1, are left out.

use std::collections::BTreeMap;

use crate::memory::{Memory, Unit};
use crate::page::samples;
use crate::state::DeviceSample;

const MIB: f64 = 1_048_576.0;

/// Reads the page: a sample per GPU, by the number in its label `gpu`. A page of
/// something else has none.
#[must_use]
pub fn read(page: &str) -> BTreeMap<u32, DeviceSample> {
    let mut gpus: BTreeMap<u32, Fields> = BTreeMap::new();
    for sample in samples(page) {
        let Some(field) = sample.name.strip_prefix("DCGM_FI_") else {
            continue;
        };
        let gpu = sample.number("gpu").and_then(|gpu| u32::try_from(gpu).ok());
        if let Some(gpu) = gpu {
            gpus.entry(gpu).or_default().take(field, sample.value);
        }
    }
    let read = gpus.into_iter().map(|(gpu, fields)| (gpu, fields.sample()));
    read.collect()
}

#[derive(Default)]
struct Fields {
    utilisation: Option<f64>,
    sm: Option<f64>,
    dram: Option<f64>,
    copy: Option<f64>,
    used: Option<f64>,
    free: Option<f64>,
    reserved: Option<f64>,
}

impl Fields {
    fn take(&mut self, field: &str, value: f64) {
        let up_to = |most: f64| (0.0..=most).contains(&value).then_some(value);
        match field {
            "DEV_GPU_UTIL" => self.utilisation = up_to(100.0).map(|percent| percent / 100.0),
            "PROF_SM_ACTIVE" => self.sm = up_to(1.0),
            "PROF_DRAM_ACTIVE" => self.dram = up_to(1.0),
            "DEV_MEM_COPY_UTIL" => self.copy = up_to(100.0).map(|percent| percent / 100.0),
            "DEV_FB_USED" => self.used = up_to(1e9),
            "DEV_FB_FREE" => self.free = up_to(1e9),
            "DEV_FB_RESERVED" => self.reserved = up_to(1e9),
            _ => {}
        }
    }

    fn sample(self) -> DeviceSample {
        let memory = self.used.zip(self.free).and_then(|(used, free)| {
            let total = used + free + self.reserved.unwrap_or(0.0);
            let bytes = |mib: f64| (mib * MIB) as u64;
            // What is reserved cannot be had either.
            Memory::new(bytes(total - free), bytes(total), Unit::DeviceBytes)
        });
        DeviceSample {
            utilisation: self.utilisation,
            sm_utilisation: self.sm,
            memory_bandwidth: self.dram.or(self.copy),
            memory,
        }
    }
}
