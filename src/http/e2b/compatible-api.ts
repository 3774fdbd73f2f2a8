import type { IncomingMessage } from 'node:http';
import type { AuditSink } from '../../contracts/audit.ts';
import type { GatingDeps } from '../corridor/approval-gating.ts';
import { nothingMatched } from '../corridor/nothing-matched.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ApiSurface } from '../corridor/api-surface.ts';
import type { ApiTerms } from '../corridor/corridor.ts';
import { createHttpServer, type HttpServer, type HttpServerDeps } from '../server/http-server.ts';
import type { ApprovalGate } from '../../services/approvals/approval-gate.ts';
import { fromCompatibleForm } from '../../model/api-key-text.ts';
import { featureDisabled, poolNotFound } from '../../model/refusals.ts';
import type { Clients } from '../limits/clients.ts';
import { controlRoutes, type ControlDeps } from './control/routes.ts';
import { linkedAddressOf, overLinks } from './traffic/over-links.ts';
import { restIdOf, sandboxNamed } from './sandbox-id.ts';
import { sandboxServices } from './services/services.ts';
import { shownError } from './shown-error.ts';
import type { OtherClusters } from './traffic/admission.ts';
import { letPagesRead } from './traffic/cross-origin.ts';
import { sandboxTraffic } from './traffic/traffic.ts';

export interface CompatibleApiDeps extends Pick<
  HttpServerDeps,
  'operations' | 'clock' | 'watchers' | 'tls' | 'clients' | 'admission'
> {
  readonly terms: ControlDeps['terms'] & {
    readonly others?: OtherClusters;
    readonly manager?: ApiTerms['manager'];
  };
  readonly gating: GatingDeps | undefined;
  readonly gate: ApprovalGate;
  readonly audit: AuditSink | undefined;
}

export interface CompatibleServer extends HttpServer {
  readonly overLinks: Pick<Gateway, 'takes' | 'answer' | 'upgrade'>;
}

/**
 * Serves E2B's SDKs on its own listener: the control API, and traffic for sandboxes. Each call maps
 * to one REST operation.
 */
export const createCompatibleApi = ({
  terms,
  gating,
  gate,
  audit,
  ...deps
}: CompatibleApiDeps): CompatibleServer => {
  const { operations, clock, clients, admission } = deps;
  const { log, metrics } = deps.watchers;
  const services = sandboxServices({
    ...{ operations, clock, log, metrics, gate, audit, admission },
  });
  const traffic = sandboxTraffic({
    ...{ operations, services, clients, clock, log, metrics, audit, admission },
    terms,
  });
  const server = createHttpServer({
    ...deps,
    terms: {
      clusterId: terms.clusterId,
      sunset: undefined,
      surface: surfaceOf({ operations, gate, terms }, clients),
      manager: terms.manager,
    },
    people: { gating },
    gateway: traffic,
    upgrade: traffic.upgrade,
  });
  server.server.prependListener('request', letPagesRead);
  return {
    ...server,
    overLinks: overLinks(server.server, { clients, upgrade: traffic.upgrade }),
    stop: async (graceMs) => {
      services.endStreams();
      await server.stop(graceMs);
      traffic.stop();
      services.stop();
    },
  };
};

const surfaceOf = (deps: ControlDeps, clients: Clients): ApiSurface => {
  const notFound = nothingMatched(clients);
  return {
    routes: controlRoutes(deps),
    adopt,
    // the manager translates this answer
    shown: (answer, request) => (linkedAddressOf(request) ? answer : shownError(answer)),
    named: namedAsElsewhere,
    otherwise: async (context) => {
      if (!OF_THEIRS.test(context.path)) return await notFound(context);
      await clients.authenticate(context.req);
      const [, template] = NAMED_TEMPLATE.exec(context.path) ?? [];
      if (context.method === 'GET' && template !== undefined) throw poolNotFound(template);
      throw featureDisabled(
        `${context.method.slice(0, 32)} ${context.path.slice(0, 256)}`,
        'such operation',
      );
    },
  };
};

const OF_THEIRS =
  /^\/(?:v\d\/)?(?:sandboxes|templates|snapshots|volumes|secrets|teams|nodes|events|admin)(?:\/|$)/;

/** Some SDKs do not encode the slashes of a name. */
const NAMED_TEMPLATE = /^\/templates\/aliases\/(.+)/;

const SANDBOX_IN_PATH = /^((?:\/v2)?\/sandboxes\/)([0-9a-f]{32}[0-9a-z]{0,25})(?=[/?]|$)/;

/** Rewrites key and id to the REST API's forms. */
const adopt = (request: IncomingMessage): void => {
  const { headers, url = '' } = request;
  const key = headers['x-api-key'];
  if (typeof key === 'string') headers['service-api-key'] = fromCompatibleForm(key);
  else delete headers['service-api-key'];
  delete headers.cookie;
  request.url = url.replace(SANDBOX_IN_PATH, (whole, before: string, text: string) => {
    const sandbox = sandboxNamed(text);
    return sandbox ? before + restIdOf(sandbox) : whole;
  });
};

/** Maps ids to the REST API's names for sandbox and pool. */
const namedAsElsewhere = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { sandboxID, templateID } = value as Readonly<Record<string, unknown>>;
  const sandbox = typeof sandboxID === 'string' ? sandboxNamed(sandboxID) : undefined;
  return {
    ...(sandbox === undefined ? {} : { sandboxId: restIdOf(sandbox) }),
    ...(typeof templateID === 'string' ? { poolName: templateID } : {}),
  };
};
