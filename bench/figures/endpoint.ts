import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { pause } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

const PAGES = 300;
const FILES = 4;
const FILE_MIB = 64;
const WARM_UP = 10;

/**
 * The shipped template `web`, on the host's network so that its server can be asked directly too,
 * and with room for a file.
 */
export const endpoint: Figure = {
  name: 'endpoint',
  about:
    'the web server of the shipped template through the daemon, against the same server asked directly',
  run: async (bench) => {
    const port = await freePort();
    const templates = join(bench.folder, 'endpoint-templates');
    mkdirSync(templates);
    cpSync(resolve('config/templates/default.json'), join(templates, 'default.json'));
    writeFileSync(
      join(templates, 'web.json'),
      onHost(readFileSync(resolve('config/templates/web.json'), 'utf8'), port),
    );
    const daemon = await Daemon.start(bench.load, ['--templates-dir', templates]);
    try {
      const { service } = daemon;
      await service.createFullPool('web', 1, 'web');
      const id = await service.claim('web');
      await service.call(
        {
          method: 'POST',
          path: `/sandboxes/${id}/exec`,
          body: JSON.stringify({ command: `head -c ${FILE_MIB}M /dev/zero > file` }),
        },
        200,
      );
      const ours = {
        port: service.port,
        head: `/sandboxes/${id}/endpoints/web`,
        key: readFileSync(join(daemon.dataDir, 'keys', 'tenant.key'), 'utf8').trim(),
      };
      const theirs = { port, head: '' };
      const measure = async (side: Side): Promise<Taken> => {
        const pages = await ask(side, '/index.html', PAGES);
        const files = await ask(side, '/file', FILES);
        return { p50: quantile(pages, 0.5), rate: FILE_MIB / (quantile(files, 0.5) / 1_000) };
      };
      // Until the code is compiled.
      for (let turn = 0; turn < WARM_UP; turn += 1) {
        await measure(ours);
        await measure(theirs);
      }
      const found = await inPairs(bench, {
        ours: () => measure(ours),
        theirs: () => measure(theirs),
      });
      const of = (what: keyof Taken) => ({
        ours: found.ours.map((taken) => taken[what]),
        theirs: found.theirs.map((taken) => taken[what]),
      });
      return [
        {
          name: 'endpoint, a page, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.5,
          beyond: 1.25,
          ...of('p50'),
        },
        {
          name: `endpoint, a file of ${FILE_MIB} MiB`,
          unit: 'MB/s',
          better: 'more',
          reach: 0.5,
          beyond: 0.7,
          ...of('rate'),
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

/** Who is asked, and below which path. */
export interface Side {
  readonly port: number;
  readonly head: string;
  readonly key?: string;
}
interface Taken {
  readonly p50: number;
  readonly rate: number;
}

const onHost = (text: string, port: number): string => {
  const template = JSON.parse(text.replaceAll('8000', String(port))) as {
    spec: { network: string; containers: { resources: object }[] };
  };
  template.spec.network = 'host';
  for (const container of template.spec.containers)
    container.resources = { limits: { cpu: '2', memory: '1Gi' } };
  return JSON.stringify(template);
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await pause(1);
  return port;
};

/** One after the other; a connection is used again where the server lets it. Milliseconds each. */
export const ask = async (
  { port, head, key }: Side,
  path: string,
  count: number,
): Promise<readonly number[]> => {
  const request = Buffer.from(
    `GET ${head}${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${key === undefined ? '' : `SERVICE-API-KEY: ${key}\r\n`}\r\n`,
  );
  const times: number[] = [];
  let kept: Socket | undefined;
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    const socket: Socket = kept ?? connect({ port, host: '127.0.0.1', noDelay: true });
    const { keep } = await answer(socket, request);
    times.push(performance.now() - began);
    kept = keep ? socket : undefined;
    if (!keep) socket.destroy();
  }
  kept?.destroy();
  return times;
};

const answer = (socket: Socket, request: Buffer): Promise<{ readonly keep: boolean }> =>
  new Promise((settle, fail) => {
    let start = '';
    let left = -1;
    let keep = false;
    const done = (): void => {
      socket.off('data', take).off('error', fail).off('close', cut);
      settle({ keep });
    };
    const cut = (): void => fail(new Error(`the connection was closed: ${start.slice(0, 200)}`));
    const take = (bytes: Buffer): void => {
      if (left >= 0) left -= bytes.length;
      else {
        start += bytes.toString('latin1');
        const end = start.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (!/^HTTP\/1\.[01] 200 /.test(start))
          return fail(new Error(`answered ${start.slice(0, 200)}`));
        keep = start.startsWith('HTTP/1.1') && !/\r\nconnection: close/i.test(start);
        left =
          Number(/\r\ncontent-length: (\d+)/i.exec(start)?.[1] ?? Number.NaN) -
          (start.length - end - 4);
      }
      if (!(left > 0)) done();
    };
    socket.on('data', take).once('error', fail).once('close', cut);
    socket.write(request);
  });
