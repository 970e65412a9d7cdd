for name in audio_rnnt detr_var e3nn_force loader_pinned moe_ckpt ode_node offload_opt packed_flex unet3d; do
    memtrace analyze --quiet meaning/$name.pickle.zst
done
