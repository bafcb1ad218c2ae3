// A private identity provider for the tests of sign-in. Its configuration is the first line of standard input; it writes
// a line when it listens. `PUT /test` changes the groups of accounts, and how it misbehaves.
import http from "node:http";
import readline from "node:readline";
import Provider from "oidc-provider";

const line = await new Promise((resolve) => readline.createInterface({ input: process.stdin }).once("line", resolve));
const given = JSON.parse(line);
const state = { groups: given.groups, without_groups: false };
const issuer = `http://127.0.0.1:${given.port}`;

const provider = new Provider(issuer, {
  jwks: given.jwks,
  clients: given.clients,
  cookies: { keys: ["tests"] },
  claims: { openid: ["sub"], profile: ["name"], groups: ["groups"] },
  scopes: ["openid", "profile", "groups", "offline_access"],
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  responseTypes: ["code"],
  // It would not call the loopback address, where the service under test is.
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
  issueRefreshToken: async () => true,
  rotateRefreshToken: () => true,
  ttl: { AccessToken: 600, ClientCredentials: 600, IdToken: 600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600 },
  async findAccount(_, sub) {
    const claims = async () => ({
      sub,
      name: `${sub[0].toUpperCase()}${sub.slice(1)}`,
      ...(state.without_groups ? {} : { groups: state.groups[sub] ?? [] }),
    });
    return { accountId: sub, claims };
  },
  // Nobody is asked for consent.
  async loadExistingGrant(ctx) {
    const { client, session, result } = ctx.oidc;
    const known = result?.consent?.grantId ?? session.grantIdFor(client.clientId);
    if (known) return provider.Grant.find(known);
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid profile groups offline_access");
    await grant.save();
    return grant;
  },
  extraTokenClaims: async (_, token) => ({ groups: state.groups[token.clientId] ?? [] }),
  features: {
    devInteractions: { enabled: true },
    backchannelLogout: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: async () => undefined,
      getResourceServerInfo: async (_, audience) => ({
        scope: "",
        audience,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});
provider.on("server_error", (_, error) => console.error(error));
provider.on("backchannel.error", (_, error) => console.error(error));

const answer = provider.callback();
http
  .createServer((request, response) => {
    if (request.url === "/test") {
      let body = "";
      request.on("data", (piece) => (body += piece));
      request.on("end", () => {
        Object.assign(state, JSON.parse(body));
        response.end();
      });
      return;
    }
    answer(request, response);
  })
  .listen(given.port, "127.0.0.1", () => console.log("listening"));
