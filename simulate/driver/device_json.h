/* The description of the simulated device for cuDNN. */
#ifndef MT_DEVICE_JSON_H
#define MT_DEVICE_JSON_H

enum { MAX_DEVICE_JSON = 2048 };

/* Sets `json` to the text of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. For an H200 it equals
 * cuDNN's own description. For other cards, values that are missing in the table of cards (clocks
 * and registers) are those of an H200. */
void sim_device_json(char json[MAX_DEVICE_JSON]);

#endif
