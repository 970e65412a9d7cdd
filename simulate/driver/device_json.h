/* The description of the simulated device for cuDNN. */
#ifndef MT_DEVICE_JSON_H
#define MT_DEVICE_JSON_H

enum { MAX_DEVICE_JSON = 2048 };

/* Sets `json` to the text of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. For an H200 the text equals
 * cuDNN's own description. For other cards, values that the table of cards does not have (clocks
 * and registers) are those of an H200. */
void sim_device_json(char json[MAX_DEVICE_JSON]);

#endif
