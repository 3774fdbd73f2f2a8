import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { encodeAsk, KeptConnection } from '../kept-connection.ts';
import { beside } from '../neighbours/beside.ts';
import { FLOODS } from '../neighbours/floods.ts';

/** What the quiet tenant's pool is made from where the flood is one of readiness probes. */
const PROBED = {
  template: {
    containers: [
      {
        name: 'main',
        image: 'host',
        readinessProbe: { exec: { command: ['/bin/true'] }, timeoutSeconds: 30 },
      },
    ],
  },
};

/** A row of figures for each flood, on a daemon of its own. */
export const neighbours: readonly Figure[] = FLOODS.map((flood): Figure => ({
  name: `neighbours:${flood.name}`,
  about: `another tenant beside ${flood.about}`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      return await beside(bench, flood, {
        quiet: daemon.service,
        quietSource: flood.probed ? PROBED : { templateName: 'default' },
        noisy: {
          port: daemon.service.port,
          key: await keyOfAnother(daemon),
          template: 'default',
          image: 'host',
        },
        calm: () => daemon.calm(),
      });
    } finally {
      await daemon.dispose();
    }
  },
}));

const keyOfAnother = async ({ dataDir, service: { port } }: Daemon): Promise<string> => {
  const key = readFileSync(join(dataDir, 'keys', 'admin.key'), 'utf8').trim();
  const connection = await KeptConnection.open(port);
  try {
    const { status, body } = await connection.send(
      encodeAsk({
        method: 'POST',
        path: '/admin/api-keys',
        key,
        body: '{"team":"noisy","user":"noisy"}',
      }),
    );
    if (status !== 201)
      throw new Error(`the noisy tenant's key was answered with ${status}: ${body}`);
    return (JSON.parse(body) as { readonly apiKey: string }).apiKey;
  } finally {
    connection.close();
  }
};
