import type { Assembly, AssemblyTerms } from './assembly/assembly.ts';
import type { Config } from './config/config.ts';
import { openEmbedded } from './embedded.ts';
import type { TlsIdentity } from '../http/server/listener.ts';
import { WaitingServer } from '../http/server/waiting-server.ts';
import { openKubernetes } from './kubernetes.ts';

const ASSEMBLIES: Readonly<
  Record<Config['assembly'], (config: Config, terms: AssemblyTerms) => Promise<Assembly>>
> = {
  embedded: openEmbedded,
  kubernetes: openKubernetes,
};

export const openedAssembly = async (
  config: Config,
  terms: Omit<AssemblyTerms, 'waits'>,
  tls: TlsIdentity | undefined,
): Promise<Assembly> => {
  const { log } = terms;
  const waiting = new WaitingServer({
    listen: config.listen,
    tls,
    said: (outcome) => {
      log.info(outcome, 'start-waits');
    },
  });
  try {
    return await ASSEMBLIES[config.assembly](config, {
      ...terms,
      waits: (problem) => {
        waiting.say(problem);
      },
    });
  } finally {
    await waiting.stop();
  }
};
