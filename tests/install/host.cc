// A program that knows nothing of lethe, and loads a library that does.
int RunPlugin();

int main() { return RunPlugin(); }
