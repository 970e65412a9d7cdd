/* A library that soaked.c loads and unloads. */
int soak_plugin(void);

int soak_plugin(void)
{
    return 1;
}
