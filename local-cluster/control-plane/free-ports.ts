import { createServer } from 'node:net';

/**
 * Below the range from which Linux takes the ports of outgoing connections, so that a component
 * finds its port free again after a restart.
 */
const [FIRST, LAST] = [20_000, 32_000];

/** So many different ports of 127.0.0.1 on which nothing listens now. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const found = new Set<number>();
  for (let attempt = 0; found.size < count; attempt += 1) {
    if (attempt > 200)
      throw new Error(`no ${count} free ports between ${FIRST} and ${LAST} on 127.0.0.1`);
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (await isFree(port)) found.add(port);
  }
  return [...found];
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
