for name in audio_rnnt detr_var e3nn_force loader_pinned moe_ckpt ode_node offload_opt packed_flex unet3d; do
    case $name in # sanitizers take a minute for all of them
    o*|p*) memtrace analyze --quiet meaning/$name.pickle.zst ;;
    *) fast_memtrace analyze --quiet meaning/$name.pickle.zst ;;
    esac
done
