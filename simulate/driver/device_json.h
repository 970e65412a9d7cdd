/* The simulated device as cuDNN wants it described. */
#ifndef MT_DEVICE_JSON_H
#define MT_DEVICE_JSON_H

enum { MAX_DEVICE_JSON = 2048 };

/* The text of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. For an H200 it is what cuDNN itself says
 * of one; for other cards what the table of cards does not know is as on an H200: clocks and
 * registers. */
void sim_device_json(char json[MAX_DEVICE_JSON]);

#endif
