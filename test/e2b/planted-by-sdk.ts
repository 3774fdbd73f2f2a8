import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { signatureOf } from '../../src/services/keys/signed-links.ts';
import type { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import type { HttpAnswer } from '../support/harness/http-client.ts';
import { RpcStream, type Json } from './services/rpc-client.ts';

/** Texts that occur nowhere else, for each way in. */
export const WAYS_OF_SDKS = [
  'sdk env',
  'sdk unknown field',
  'sdk broken body',
  'sdk refused env',
  'sdk query',
  'sdk wrong token',
  'sdk wrong link',
  'sdk basic',
  'sdk process env',
  'sdk input',
  'sdk file',
] as const;

export interface PlantedBySdk {
  /** What was answered, but for what tells the tokens to whoever may have them. */
  readonly answers: readonly HttpAnswer[];
  /** What it was told in confidence. */
  readonly told: Readonly<Record<string, string>>;
}

/**
 * Plants secrets by every way that the port of E2B's SDKs has. `whileRunning` is called while a
 * process runs that was given some.
 */
export const plantBySdk = async (
  daemon: DaemonUnderTest,
  texts: Readonly<Record<(typeof WAYS_OF_SDKS)[number], string>>,
  whileRunning: () => void,
): Promise<PlantedBySdk> => {
  const key = toCompatibleForm(daemon.tenantKey);
  const client = daemon.compatibleClient(key);
  const answers: HttpAnswer[] = [];
  const heard = async (answer: Promise<HttpAnswer>): Promise<void> =>
    void answers.push(await answer);
  const create = (more: object): Promise<HttpAnswer> =>
    client.post('/v2/sandboxes', { templateID: 'base', ...more });

  const made = await create({ envVars: { PLANTED_BY_SDK: texts['sdk env'] } });
  const { sandboxID, envdAccessToken, trafficAccessToken } = JSON.parse(made.text) as Readonly<
    Record<string, string>
  >;
  const [access = '', traffic = ''] = [envdAccessToken, trafficAccessToken];
  const headers = { 'E2b-Sandbox-Id': sandboxID ?? '', 'X-Access-Token': access };

  await heard(client.get(`/v2/sandboxes?apiKey=${texts['sdk query']}`));
  await heard(client.get('/v2/sandboxes', { key: `${key}0` }));
  await heard(create({ templateID: 'nowhere', token: texts['sdk unknown field'] }));
  await heard(create({ envVars: { 'NO NAME': texts['sdk refused env'] } }));
  const raw = `{"templateID":"base","token":"${texts['sdk broken body']}"`;
  await heard(client.post('/v2/sandboxes', undefined, { raw }));
  const wrong = { ...headers, 'X-Access-Token': texts['sdk wrong token'] };
  await heard(client.get('/health', { headers: wrong }));
  const link = signatureOf(`/tmp/planted-by-sdk:read::${access}`);
  const signed = (signature: string): string =>
    `/files?path=/tmp/planted-by-sdk&signature=${encodeURIComponent(signature)}`;
  await heard(client.get(signed(`v1_${texts['sdk wrong link']}`)));
  await heard(
    client.post('/files?path=/tmp/planted-by-sdk', undefined, {
      raw: texts['sdk file'],
      headers: { ...headers, 'Content-Type': 'application/octet-stream' },
    }),
  );
  const read = await client.get(signed(link));
  if (read.text !== texts['sdk file']) throw new Error(`the link led to ${read.text}`);
  const basic = Buffer.from(`user:${texts['sdk basic']}`).toString('base64');
  await heard(
    client.post(
      '/filesystem.Filesystem/Stat',
      { path: '/tmp' },
      { headers: { ...headers, Authorization: `Basic ${basic}` } },
    ),
  );

  const { port } = new URL(daemon.compatibleUrl);
  const process = { cmd: '/bin/cat', envs: { PLANTED_IN_IT: texts['sdk process env'] } };
  const stream = await RpcStream.open(Number(port), '/process.Process/Start', { process }, headers);
  const { pid } = ((await stream.until(isStart))['event'] as { readonly start: Json }).start;
  const input = { stdin: Buffer.from(texts['sdk input']).toString('base64') };
  await heard(client.post('/process.Process/SendInput', { process: { pid }, input }, { headers }));
  whileRunning();
  await heard(client.post('/process.Process/List', {}, { headers }));
  await heard(client.post('/process.Process/CloseStdin', { process: { pid } }, { headers }));
  await stream.end();
  return {
    answers,
    told: {
      'access token': access,
      'traffic token': traffic,
      'signature of a link': link,
      'tenant key as SDKs have it': key.replace('e2b_', ''),
    },
  };
};

const isStart = ({ event }: Json): boolean => 'start' in (event as Json);
