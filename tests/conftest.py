"""Two CPU devices, strict dtypes; programs shared between tests."""

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")
