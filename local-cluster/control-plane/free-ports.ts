import { createServer, type Server } from 'node:net';

/** `end` is exclusive. */
type PortRange = readonly [first: number, end: number];

/** Below Linux' own range, so that a component finds its port free after a restart. */
const RANGE: PortRange = [20_000, 32_000];

/**
 * Nothing listens on them now, and no other call returns them while this process lives, in any
 * process. Rejects if the range has too few.
 */
export const freePorts = async (
  count: number,
  range: PortRange = RANGE,
): Promise<readonly number[]> => {
  const [first, end] = range;
  const start = Math.floor(Math.random() * (end - first));
  const found: number[] = [];
  for (let step = 0; found.length < count; step += 1) {
    if (step === end - first)
      throw new Error(`no ${count} free ports from ${first} to ${end - 1} on 127.0.0.1`);
    const port = first + ((start + step) % (end - first));
    if (await isTaken(port)) found.push(port);
  }
  return found;
};

/**
 * Claims the port by a socket of an abstract name: Linux gives each name once, and takes it back
 * when its process ends.
 */
const isTaken = async (port: number): Promise<boolean> => {
  const claim = await listening(createServer(), { path: `\0sandpool-port-${port}` });
  if (!claim) return false;
  claim.unref();
  const trial = await listening(createServer(), { port, host: '127.0.0.1' });
  await closed(trial ?? claim);
  return trial !== undefined;
};

/** Undefined if something listens there already. */
const listening = (
  server: Server,
  at: { readonly path: string } | { readonly port: number; readonly host: string },
): Promise<Server | undefined> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(at, () => resolve(server));
  });

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => void server.close(() => resolve()));
